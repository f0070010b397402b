// A policy on calls. Told to look around, it asks for everything a process has and says what it found.
import { getArguments, getEnvironment } from "wasi:cli/environment@0.2.0";
import { getDirectories } from "wasi:filesystem/preopens@0.2.0";
import { createTcpSocket } from "wasi:sockets/tcp-create-socket@0.2.0";
import { createUdpSocket } from "wasi:sockets/udp-create-socket@0.2.0";

const look = {
  environment: getEnvironment,
  arguments: getArguments,
  preopens: () => getDirectories().map(([, name]) => name),
  tcp: () => (createTcpSocket("ipv4"), ["a socket"]),
  tcp6: () => (createTcpSocket("ipv6"), ["a socket"]),
  udp: () => (createUdpSocket("ipv4"), ["a socket"]),
};

function lookAround() {
  const found = {};
  const refused = {};
  for (const [what, ask] of Object.entries(look)) {
    try {
      const things = ask();
      if (things.length > 0) found[what] = things;
    } catch (error) {
      refused[what] = String(error?.payload ?? error);
    }
  }
  console.log("the javascript guest looked around");
  const random = Array.from(crypto.getRandomValues(new Uint8Array(8))).join(".");
  return { asked: Object.keys(look), found, refused, now: Date.now() / 1000, random };
}

export const callHook = {
  check(request) {
    const { message } = JSON.parse(request.document().read());
    if (message === "forbidden") return { tag: "deny", val: "javascript says no" };
    if (message === "look around") return { tag: "deny", val: JSON.stringify(lookAround()) };
    if (message.startsWith("fetch ")) fetch(message.slice("fetch ".length));
    return { tag: "abstain" };
  },
};
