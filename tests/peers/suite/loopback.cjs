// Loaded before a server that listens on every address when it is given a port: tests must not
// open the machine to its network, so such a listen becomes one on the loopback address.
const net = require("node:net");
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (first, ...rest) {
  const port = Number(first);
  if (Number.isInteger(port) && typeof first !== "object" && typeof rest[0] !== "string") {
    return listen.call(this, port, "127.0.0.1", ...rest);
  }
  return listen.call(this, first, ...rest);
};
