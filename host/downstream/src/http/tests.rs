//! Clients on loopback sockets, before a fake backend. The client is a few lines of HTTP/1.1, so that
//! every header and every half-open connection is the test's own choice.

mod client;
mod legacy;
mod modern;
mod order;
