"""Tasks, as the suite wants a server to have them: the tools that make them, and the methods about them."""

from __future__ import annotations

import threading
import time
from typing import Any

Json = Any
EXTENSION = "io.modelcontextprotocol/tasks"
CREATED = "2026-11-30T00:00:00Z"
MINUTE_MS = 60_000


def question(message: str) -> Json:
    """A form with one box to tick."""
    schema = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def said(text: str, *, is_error: bool = False) -> Json:
    """A result of one text."""
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


class Jobs:
    """All tasks of one process."""

    tools = ("slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.all: dict[str, Json] = {}

    def call(self, name: str, given: Json, params: Json) -> Json | None:
        """The result of a tool; none where it needs a name first."""
        seconds, asked, outcome = 0.0, {}, {"result": said("done")}
        match name:
            case "slow_compute":
                seconds = float(given.get("seconds", 0))
            case "failing_job":
                seconds, outcome = 1.0, {"result": said("it failed", is_error=True)}
            case "protocol_error_job":
                outcome = {"error": {"code": -32603, "message": "it broke"}}
            case "confirm_delete":
                asked = {"confirm-1": question(f"Delete {given.get('filename')}?")}
            case "multi_input":
                asked = {"input-1": question("First?"), "input-2": question("Second?")}
            case "test_tool_with_task":
                answers = params.get("inputResponses") or {}
                if "user_name" not in answers:
                    return None
                outcome = {"result": said(f"Hello, {answers['user_name']['content']['name']}!")}
        with self.lock:
            id_ = f"job-{len(self.all) + 1}"
            self.all[id_] = {"due": time.monotonic() + seconds, "asked": asked, "outcome": outcome, "cancelled": False}
            made = self.described(id_)
        kept = {key: value for key, value in made.items() if key not in ("result", "error", "inputRequests")}
        return {**kept, "resultType": "task"}

    def answer(self, method: str, params: Json) -> Json | None:
        """The result of a method; none where there is no such task."""
        id_ = params["taskId"]
        with self.lock:
            task = self.all.get(id_)
            if task is None:
                return None
            if method == "tasks/get":
                return self.described(id_)
            if method == "tasks/update":
                for key in params["inputResponses"]:
                    task["asked"].pop(key, None)
            elif not self.is_over(task):
                task["cancelled"] = True
        return {"resultType": "complete"}

    def is_over(self, task: Json) -> bool:
        """Whether nothing changes any more."""
        return task["cancelled"] or (not task["asked"] and time.monotonic() >= task["due"])

    def described(self, id_: str) -> Json:
        """A task as it stands."""
        task = self.all[id_]
        common = {
            "taskId": id_, "createdAt": CREATED, "lastUpdatedAt": CREATED, "ttlMs": MINUTE_MS, "pollIntervalMs": 250,
        }
        if task["cancelled"]:
            return {**common, "status": "cancelled"}
        if task["asked"]:
            return {**common, "status": "input_required", "inputRequests": dict(task["asked"])}
        if time.monotonic() < task["due"]:
            return {**common, "status": "working"}
        status = "failed" if "error" in task["outcome"] else "completed"
        return {**common, "status": status, **task["outcome"]}
