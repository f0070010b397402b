//! JSON-RPC kept raw: the strict door, splicing, framing, SSE, envelopes and header rules of both protocol eras.
