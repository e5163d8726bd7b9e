"""Make transcripts of every known kind, with what must and what must not be found in their archives.

Deterministic: a seed gives one transcript. Every text is made up here.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

TOPICS = ("parser", "scheduler", "login form", "cache eviction", "billing export", "retry policy", "search index")
VERBS = ("Fix", "Explain", "Rewrite", "Review", "Test", "Speed up", "Document")
SECRETS = (
    "AKIA" + "Q3EGR7TJ5LKD2M4N",
    "ghp_" + "Xa8vN2mQp4Lr6Ts9Wz1Bc3Df5Gh7Jk0LmNpQ",
    "postgres://admin:Zt7pq9LmX2@db.internal:5432/app",
)


@dataclass
class MadeTranscript:
    """A transcript: its lines, the prompts that were typed, and texts that must not be in an archive.

    `sub_agents` are texts of sub-agents. `files` are those in the directory of the session, by their name there.
    """

    session: str
    cwd: str
    lines: list[bytes] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    injected: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    sub_agents: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)

    def write(self, directory: Path, *, name: str = "") -> Path:
        path = directory / f"{name or self.session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(self.lines))
        for beside, data in self.files.items():
            file = path.with_suffix("") / beside
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return path


class TranscriptMaker:
    """Makes one transcript. Every method adds an oddity; `make` chooses some at random."""

    def __init__(self, seed: int, cwd: str = "/home/dev/app") -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.made = MadeTranscript(self._uuid(), cwd)
        self.at = datetime(2026, 3, 5, 9, 0, tzinfo=UTC) + timedelta(hours=seed % 400)
        self.parent: str | None = None
        self.count = 0

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def text(self, label: str = "") -> str:
        self.count += 1
        rng = self.rng
        return f"{rng.choice(VERBS)} the {rng.choice(TOPICS)} {label}no. {self.seed}-{self.count:03}".replace("  ", " ")

    def base(self, kind: str, **fields: Any) -> Record:
        self.at += timedelta(seconds=self.rng.randint(1, 90))
        record: Record = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.made.cwd,
            "sessionId": self.made.session,
            "version": "2.1.332",
            "gitBranch": "main",
            "type": kind,
            "uuid": self._uuid(),
            "timestamp": self.at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.rng.randint(0, 999):03}Z",
            **fields,
        }
        self.parent = record["uuid"]
        return record

    def add(self, record: Record | bytes | str, *, end: bytes = b"\n") -> None:
        if isinstance(record, dict):
            record = json.dumps(record, ensure_ascii=bool(self.rng.getrandbits(1)))
        self.made.lines.append((record.encode() if isinstance(record, str) else record) + end)

    def user(self, content: Any, **fields: Any) -> Record:
        return self.base("user", message={"role": "user", "content": content}, **fields)

    def assistant(self, *blocks: Record, group: str = "") -> Record:
        message = {"role": "assistant", "model": "m", "content": list(blocks)}
        return self.base("assistant", message={**message, "id": group or f"msg_{self._uuid()}"})

    # What belongs to a conversation

    def prompt(self) -> None:
        text = self.text()
        self.made.prompts.append(text)
        self.add(self.user(text))

    def prompt_in_blocks(self) -> None:
        text = self.text()
        self.made.prompts.append(text)
        self.add(self.user([{"type": "text", "text": text}]))

    def prompt_with_image(self) -> None:
        text = self.text("in the picture ")
        self.made.prompts.append(text)
        data = "iVBOR" + "A" * self.rng.choice((100, 200_000, 1_600_000))
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
        blocks = (
            [image, {"type": "text", "text": text}]
            if self.rng.getrandbits(1)
            else [{"type": "text", "text": text}, image]
        )
        self.add(self.user(blocks))
        self.made.injected.append("iVBORAAAA")

    def multi_line_prompt(self) -> None:
        text = f"{self.text()}\n\n- first\n- second\n\n```python\nprint('{self.count}')\n```\n\nThen stop."
        self.made.prompts.append(text)
        self.add(self.user(text))

    def unicode_prompt(self) -> None:
        text = f"{self.text()} \u2014 N\u0101g\u0101rjuna \u4f60\u597d \U0001f680 \u0130"
        self.made.prompts.append(text)
        self.add(self.user(text))

    def prompt_after_reminder(self) -> None:
        text, note = self.text(), self.text("reminder ")
        self.made.prompts.append(text)
        self.made.injected.append(note)
        self.add(self.user(f"<system-reminder>\n{note}\n</system-reminder>\n{text}"))

    def prompt_beside_ide_context(self) -> None:
        text, note = self.text(), self.text("opened ")
        self.made.prompts.append(text)
        self.made.injected.append(note)
        blocks = [
            {"type": "text", "text": f"<ide_opened_file>{note}</ide_opened_file>"},
            {"type": "text", "text": text},
        ]
        self.add(self.user(blocks))

    def channel_prompt(self) -> None:
        text = self.text("from the channel ")
        self.made.prompts.append(text)
        self.add(self.user(text, isMeta=True, origin={"kind": "channel"}))

    def command_with_arguments(self) -> None:
        argument = self.text("of the command ")
        self.made.prompts.append(argument)
        wrapped = f"<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>{argument}</command-args>"
        self.add(self.user(wrapped))

    def shell_command(self) -> None:
        word = f"ls no-{self.seed}-{self.rng.randint(0, 10**9)}"
        self.made.prompts.append(word)
        self.add(self.user(f"<bash-input>{word}</bash-input>"))
        self.add(self.user("<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>"))

    def queued_prompt(self) -> None:
        text = self.text("while you work ")
        self.made.prompts.append(text)
        self.add(
            {
                "type": "queue-operation",
                "operation": "enqueue",
                "timestamp": "2026-03-05T10:00:00Z",
                "content": text,
                "sessionId": self.made.session,
            }
        )
        prompt: Any = text if self.rng.getrandbits(1) else [{"type": "text", "text": text}]
        self.add(
            self.base("attachment", attachment={"type": "queued_command", "prompt": prompt, "commandMode": "prompt"})
        )
        self.add({"type": "queue-operation", "operation": "remove", "content": None, "sessionId": self.made.session})

    def queued_prompt_that_only_the_queue_has(self) -> None:
        text = self.text("only queued ")
        self.made.prompts.append(text)
        self.add(
            {
                "type": "queue-operation",
                "operation": "enqueue",
                "timestamp": "2026-03-05T10:00:00Z",
                "content": text,
                "sessionId": self.made.session,
            }
        )
        self.add({"type": "queue-operation", "operation": "remove", "content": None, "sessionId": self.made.session})

    def untyped_record(self) -> None:
        text = self.text("of an old version ")
        self.made.prompts.append(text)
        self.add(
            {
                "timestamp": "2026-03-05T09:00:00Z",
                "sessionId": self.made.session,
                "message": {"role": "user", "content": text},
            }
        )

    def record_without_ids(self) -> None:
        text = self.text("without ids ")
        self.made.prompts.append(text)
        self.add({"type": "user", "message": {"role": "user", "content": text}})

    def answer(self) -> None:
        group = f"msg_{self._uuid()}"
        self.add(self.assistant({"type": "thinking", "thinking": "secret thought", "signature": "x"}, group=group))
        self.add(self.assistant({"type": "text", "text": f"Done with {self.text('answer ')}."}, group=group))
        self.made.injected.append("secret thought")

    def tool_use(self) -> None:
        call = f"toolu_{self._uuid()}"
        name, arguments = self.rng.choice(
            (
                ("Read", {"file_path": f"{self.made.cwd}/src/part{self.seed % 7}.py"}),
                ("Bash", {"command": "make test\nmake lint", "description": "Run the tests"}),
                ("Grep", {"pattern": "TODO", "path": "src"}),
                ("Task", {"description": "look around", "prompt": "p", "subagent_type": "Explore"}),
                ("mcp__x__y", {"q": 1}),
            )
        )
        self.add(self.assistant({"type": "tool_use", "id": call, "name": name, "input": arguments}))
        output = self.rng.choice(("ok", "line\n" * 4_000, "```\ncode\n```", "\x1b[31mred\x1b[0m", ""))
        content: Any = output if self.rng.getrandbits(1) else [{"type": "text", "text": output}]
        result = {"type": "tool_result", "tool_use_id": call, "content": content}
        if self.rng.random() < 0.2:
            result["is_error"] = True
        self.add(self.user([result], toolUseResult={"stdout": output}))

    def refusal_with_words(self) -> None:
        text = self.text("instead ") + " " + "because of the way it is done here, " * 90
        self.made.prompts.append(self.made_unique(text))
        content = (
            f"The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n{text}"
        )
        self.add(self.user([{"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": content}]))

    def made_unique(self, text: str) -> str:
        return text.strip()

    def secret(self) -> None:
        secret = self.rng.choice(SECRETS)
        self.made.secrets.append(secret)
        where = self.rng.randint(0, 2)
        if where == 0:
            text = self.text("with a key ")
            self.made.prompts.append(text)
            self.add(self.user(f"{text}\nuse {secret} for it"))
        elif where == 1:
            self.add(self.assistant({"type": "text", "text": f"I found {secret} in .env."}))
        else:
            block = {
                "type": "tool_result",
                "tool_use_id": "t",
                "content": f"{'x ' * self.rng.choice((1, 980))}TOKEN={secret}\n",
            }
            self.add(self.user([block]))

    # What does not

    def injected(self) -> None:
        note = self.text("injected ")
        self.made.injected.append(note)
        self.add(
            self.rng.choice(
                (
                    lambda: self.user(
                        f"Caveat: The messages below were generated by the user while running local commands. {note}",
                        isMeta=True,
                    ),
                    lambda: self.user(f"<local-command-stdout>{note}</local-command-stdout>"),
                    lambda: self.user(
                        f"<task-notification>{note}</task-notification>", origin={"kind": "task-notification"}
                    ),
                    lambda: self.user(note, isMeta=True, origin={"kind": "task-notification"}),
                    lambda: self.user(f"<teammate-message from='a'>{note}</teammate-message>"),
                    lambda: self.user(
                        f"This session is being continued from a previous conversation that ran out of context. {note}",
                        isCompactSummary=True,
                        isVisibleInTranscriptOnly=True,
                    ),
                    lambda: self.user(f"<system-reminder>{note}</system-reminder>"),
                    lambda: self.user([{"type": "text", "text": "[Request interrupted by user]"}]),
                    lambda: self.user(f"[Image: source: /tmp/{self.count}.png]", isMeta=True),
                )
            )()
        )

    def sidechain(self) -> None:
        note = self.text("sub-agent ")
        self.made.sub_agents.append(note)
        self.add(self.user(note, isSidechain=True))

    def sub_agent_in_its_own_file(self) -> None:
        task, answer, output = self.text("delegated "), self.text("delegate answers "), self.text("delegate saw ")
        self.made.sub_agents += [task, answer]
        self.made.injected.append(output)
        tool = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": f"{self.made.cwd}/a.py"}}
        records = [
            self.user(task),
            {"type": "api-request-blob", "message": {"role": "user", "content": [{"type": "text", "text": task}]}},
            self.assistant(tool),
            self.user([{"type": "tool_result", "tool_use_id": "t", "content": output}]),
            self.assistant({"type": "text", "text": f"{answer} with {SECRETS[0]}"}),
        ]
        self.made.secrets.append(SECRETS[0])
        name = f"{self.rng.choice(('subagents', 'subagents/workflows/w1'))}/agent-{self._uuid()[:8]}"
        lines = [json.dumps({**record, "isSidechain": True, "agentId": "a1"}) for record in records]
        self.made.files[f"{name}.jsonl"] = "\n".join([*lines, lines[0], '{"half":']).encode()
        self.made.files[f"{name}.meta.json"] = self.rng.choice(
            (b"not json", json.dumps({"agentType": "Explore", "description": f"with {SECRETS[0]}"}).encode())
        )

    def bookkeeping(self) -> None:
        note = self.text("bookkeeping ")
        self.made.injected.append(note)
        self.add(
            self.rng.choice(
                (
                    {"type": "summary", "summary": note, "leafUuid": self._uuid()},
                    {
                        "type": "file-history-snapshot",
                        "messageId": self._uuid(),
                        "snapshot": {"note": note},
                        "isSnapshotUpdate": False,
                    },
                    {"type": "ai-title", "title": note},
                    {"type": "last-prompt", "lastPrompt": note, "leafUuid": self._uuid()},
                    {"type": "mode", "mode": note},
                    {"type": "api-request-blob", "message": {"role": "user", "content": note}},
                    {
                        "type": "progress",
                        "data": {"message": {"type": "user", "message": {"role": "user", "content": note}}},
                    },
                    {"type": "unheard-of", "content": note},
                )
            )
        )
        self.add(self.base("system", subtype="turn_duration", durationMs=5, content=note))
        self.add(self.base("attachment", attachment={"type": "prompt_snapshot", "content": note * 200}))

    def compaction(self) -> None:
        record = self.base(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            compactMetadata={"trigger": "auto", "preTokens": 9},
        )
        record["parentUuid"] = None
        self.add(record)
        self.injected()

    def junk(self) -> None:
        self.add(
            self.rng.choice(
                (
                    b"not json",
                    b"{",
                    b"[1, 2]",
                    b'"text"',
                    b"null",
                    b"",
                    b"\x00" * 64,
                    b'{"no_type": 1}',
                    b"\xff\xfe{}",
                    b"[" * 3_000,
                    b'{"type": "user"}',
                    b'{"type": "user", "message": "odd"}',
                    b'{"type": "user", "message": {"role": "user", "content": [7, null, {"type": 3}]}}',
                )
            )
        )

    def duplicate(self) -> None:
        if self.made.lines:
            line = self.rng.choice(self.made.lines[-8:])
            self.made.lines.append(line)

    def changed_duplicate(self) -> None:
        for line in reversed(self.made.lines[-8:]):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and record.get("uuid"):
                self.add({**record, "parentUuid": None, "gitBranch": "other", "slug": "a-b-c"})
                return

    def rewind(self) -> None:
        self.parent = None

    def carriage_returns(self) -> None:
        text = self.text("on Windows ")
        self.made.prompts.append(text)
        self.add(self.user(text), end=b"\r\n")


REQUIRED: tuple[Callable[[TranscriptMaker], None], ...] = (TranscriptMaker.prompt, TranscriptMaker.answer)
ODDITIES: tuple[Callable[[TranscriptMaker], None], ...] = tuple(
    value
    for name, value in vars(TranscriptMaker).items()
    if callable(value)
    and not name.startswith("_")
    and name not in {"text", "base", "add", "user", "assistant", "made_unique"}
)


def make_transcript(seed: int, cwd: str = "/home/dev/app") -> MadeTranscript:
    """Return a transcript with some oddities. With 40 seeds in a row every oddity occurs."""
    maker = TranscriptMaker(seed, cwd)
    rng = random.Random(seed + 1)
    chosen = [*REQUIRED, ODDITIES[seed % len(ODDITIES)], *rng.choices(ODDITIES, k=rng.randint(2, 12))]
    first, rest = chosen[0], chosen[1:]
    rng.shuffle(rest)
    maker.made.lines.append(json.dumps({"type": "summary", "summary": "x", "leafUuid": "u"}).encode() + b"\n")
    for oddity in (first, *rest):
        oddity(maker)
        maker.made.kinds.add(oddity.__name__)
    if rng.random() < 0.3:
        half = json.dumps(maker.user("half a line"))
        maker.made.lines.append(half[: len(half) // 2].encode())
    return maker.made


def make_transcripts(number: int) -> Iterator[MadeTranscript]:
    """Yield that many different transcripts."""
    return (make_transcript(seed) for seed in range(number))
