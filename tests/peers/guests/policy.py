"""A policy on calls. Told to look around, it asks for everything a process has and says what it found."""

import encodings.idna  # what looks a name up needs it, and it cannot be loaded later
import json
import os
import socket
import sys
import time
import urllib.request

from wit_world import exports
from wit_world.imports import types


def environment():
    return dict(os.environ)


def arguments():
    return [word for word in sys.argv if word]


def directory():
    return os.listdir("/") + os.listdir(".")


def file():
    return open("/etc/passwd").read()


def written():
    return open("left-behind", "w").write("x")


def tcp():
    return str(socket.socket(socket.AF_INET, socket.SOCK_STREAM))


def udp():
    return str(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))


def name():
    return socket.getaddrinfo("localhost", 80)


def network():
    return urllib.request.urlopen("http://127.0.0.1:%s/" % PORT[0], timeout=1).read()


PORT = ["9"]
LOOK = (environment, arguments, directory, file, written, tcp, udp, name, network)


def look_around():
    found, refused = {}, {}
    for ask in LOOK:
        try:
            things = ask()
            if things:
                found[ask.__name__] = str(things)[:40]
        except Exception as error:
            refused[ask.__name__] = type(error).__name__
    print("the python guest looked around")
    asked = [ask.__name__ for ask in LOOK]
    return {"asked": asked, "found": found, "refused": refused, "now": time.time(), "random": os.urandom(8).hex()}


class CallHook(exports.CallHook):
    def check(self, request):
        message = json.loads(request.document().read()).get("timezone", "")
        if message == "forbidden":
            return types.Decision_Deny("python says no")
        if message.startswith("look around"):
            PORT[0] = message.rsplit(" ", 1)[-1]
            return types.Decision_Deny(json.dumps(look_around()))
        return types.Decision_Abstain()
