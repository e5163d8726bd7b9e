"""How much of what is secret is found, how much of what is found is secret, and how long looking takes.

Two sources. *Labelled*: texts with character ranges of fake secrets from the corpus, one row for each kind. *Made*: lines
of the shapes in which secrets and their innocent look-alikes stand in memory files, each filled with values drawn from a
seeded generator that the rules have never seen; this covers what the labelled texts lack (passwords and tokens in
context, bearer tokens, addresses). A text counts by overlap; nothing of a text is printed, only its name and position.
"""

from __future__ import annotations

import gzip
import json
import statistics
import string
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from echod.memory.redact import Secret, find_email_in_evidence, find_secrets
from tests.support import corpus

BAR = 0.95
BAR_SECONDS = 0.030
ROUNDS = 15

# The labels' rules and the kinds that answer to them.
KINDS = {
    "anthropic": "anthropic-key",
    "aws": "aws-access-key, aws-secret-key",
    "basicauth": "connection-string",
    "database-connection-string": "connection-string",
    "gcp": "private-key",
    "github": "github-token",
    "gitlab": "gitlab-token",
    "huggingface": "huggingface-token",
    "npm": "npm-token",
    "openai": "openai-key",
    "privatekey": "private-key",
    "sendgrid": "sendgrid-key",
    "slack": "slack-token",
    "stripe": "stripe-key",
} | dict.fromkeys(
    ["1password", "databricks", "docker", "figma", "grafana", "groq", "hashicorp-vault", "notion", "shopify"], "api-key"
) | dict.fromkeys(["tailscale", "vercel"], "api-key")  # fmt: skip

# Texts whose labels answer another question than "is this a secret?".
SKIPPED = {
    "secretlint-rule-azure/": "labels a client id, which is a UUID and no secret",
    "secretlint-rule-no-homedir/": "labels home directories",
    "secretlint-rule-pattern/": "labels what a pattern of the user's own matches",
    "secretlint-rule-filter-comments/": "labels the words SECRET A, SECRET B",
    "secretlint-rule-example/": "labels the words of an example",
    "ng.AWS Account ID": "labels an account number, which is no secret",
    "ok.allows": "holds a secret that an option allows",
    "enableIDScanRule-false": "holds a secret that an option switched off",
    "disabledMessageIds": "holds a secret that an option switched off",
}

# Secrets that the labels leave out, seen one by one: found here, they are no false positives.
UNLABELLED = {
    ("ng.mysql", "password"): "a password beside the URL that is labelled",
    ("ng.postgresql", "password"): "a password beside the URL that is labelled",
    ("ng.real-credentials", "connection-string"): "a password that holds an @ or a !",
    ("ok.database-urls-not-detected", "connection-string"): "a password left to the rule for connection strings",
    ("secretlint-rule-openai/ok.valid", "openai-key"): "a key without the marker that newer keys of the vendor carry",
}


@dataclass(slots=True)
class Row:
    """What was counted for one kind."""

    found: int = 0
    missed: int = 0
    wrong: int = 0
    places: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.found / (self.found + self.missed) if self.found + self.missed else 1.0

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.wrong) if self.found + self.wrong else 1.0


def show(title: str, rows: dict[str, Row]) -> None:
    print(f"\n{title}\n{'kind':34} {'found':>6} {'missed':>6} {'wrong':>6} {'precision':>9} {'recall':>7}")
    for kind, row in sorted(rows.items()):
        print(f"{kind:34} {row.found:6} {row.missed:6} {row.wrong:6} {row.precision:9.3f} {row.recall:7.3f}")
        for place in row.places:
            print(f"    {place}")


def overlap(one: Secret, start: int, end: int) -> bool:
    return one.start < end and start < one.end


def labelled() -> list[dict[str, Any]]:
    texts = json.loads(gzip.decompress(corpus("secrets", "labelled.json.gz").read_bytes()))
    different = {(text["text"], json.dumps(text["secrets"])): text for text in reversed(texts)}
    return list(reversed(different.values()))


@pytest.mark.bench
@pytest.mark.corpus
def test_labelled_texts() -> None:
    rows: dict[str, Row] = {}
    skipped: Counter[str] = Counter()
    for text in labelled():
        reason = next((why for part, why in SKIPPED.items() if part in text["name"]), None)
        if reason is not None:
            skipped[reason] += 1
            continue
        secrets = find_secrets(text["text"])
        for label in text["secrets"]:
            row = rows.setdefault(KINDS[label["rule"].removeprefix("secretlint-rule-")], Row())
            if any(overlap(secret, label["start"], label["end"]) for secret in secrets):
                row.found += 1
            else:
                row.missed += 1
                row.places.append(f"missed: {text['name']} at {label['start']}")
        for secret in secrets:
            if any(overlap(secret, label["start"], label["end"]) for label in text["secrets"]):
                continue
            if any(part in text["name"] and kind == secret.kind for part, kind in UNLABELLED):
                continue
            kind = next((name for name in rows if secret.kind in name.split(", ")), secret.kind)
            row = rows.setdefault(kind, Row())
            row.wrong += 1
            row.places.append(f"wrong: {text['name']} at {secret.start}")

    show("labelled texts, each different one once", rows)
    for reason, count in skipped.items():
        print(f"skipped {count}: {reason}")
    for (part, kind), why in UNLABELLED.items():
        print(f"not counted: {kind} in {part}: {why}")
    total = Row(*(sum(getattr(row, name) for row in rows.values()) for name in ("found", "missed", "wrong")))
    print(f"in all: precision {total.precision:.3f}, recall {total.recall:.3f}")
    assert total.precision >= BAR
    assert total.recall >= BAR
    assert rows["connection-string"].precision >= BAR
    assert rows["connection-string"].recall >= BAR


BASE = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
WORDS = [
    "auth", "parser", "worker", "queue", "cache", "session", "plan", "review", "commit", "branch", "config", "service",
    "handler", "client", "server", "memory", "index", "retry", "timeout", "schema", "table", "column", "user", "account",
    "gateway", "token", "key", "secret", "migration", "feature", "design", "layout", "button",
]  # fmt: skip


def password(random: Random) -> str:
    """Words with numbers and marks as people make them, or drawn characters as managers do."""
    word = random.choice(
        ["hunter", "Winter", "correct", "dragon", "Tr0ub4dor", "letmein", "Passw0rd", "sunny", "qwerty"]
    )
    drawn = "".join(random.choices(BASE + "!@#$%^*_-+?.", k=random.randint(8, 24)))
    made = f"{word}{random.choice(['', '!', '_', '-', '#'])}{random.randint(1, 2030)}"
    return random.choice([made, made, BASE[random.randrange(52)] + drawn + "7k"])


def token(random: Random) -> str:
    alphabet = random.choice([BASE, BASE, BASE + "-_", HEX, string.ascii_lowercase + string.digits])
    return "".join(random.choices(alphabet, k=random.choice([24, 32, 40, 43, 64])))


def basic(random: Random) -> str:
    return "".join(random.choices(BASE, k=random.choice([16, 24, 32]))) + "=="


def address(random: Random) -> str:
    return f"{random.choice(WORDS)}{random.choice(['.', '_', '+', ''])}{random.choice(WORDS)}@{random.choice(WORDS)}.example"


def slug(random: Random) -> str:
    return random.choice("-_").join(random.choices(WORDS, k=random.randint(3, 7))) + random.choice(
        ["", "-v2", "_2026", "-12"]
    )


def path(random: Random) -> str:
    return "/".join(random.choices(WORDS, k=random.randint(2, 4))) + random.choice([".py", ".md:12", "_test.go", ""])


def number(random: Random) -> str:
    """What git, checksums and databases write: 7 to 64 hexadecimal digits, a UUID, a digest with its name."""
    digits = "".join(random.choices(HEX, k=64))
    return random.choice(
        [digits[:7], digits[:12], digits[:40], digits,
         f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}", f"sha256:{digits}",
         "sha512-" + "".join(random.choices(BASE + "+/", k=86)) + "=="]
    )  # fmt: skip


def identifier(random: Random) -> str:
    words = random.choices(WORDS, k=random.randint(2, 4))
    return random.choice(
        [
            "".join(map(str.title, words)),
            words[0] + "".join(map(str.title, words[1:])),
            "_".join(words),
            ".".join(words),
        ]
    )


SECRET_LINES = {
    "password": (password, [
        "password: {}", "- **Password**: {}", "DB_PASSWORD={}", "export PGPASSWORD='{}'", '"password": "{}",', "pwd={};db=x",
        "the password is {} for now", "set the admin password to `{}`", "mysql --password={} -h db", 'login(user, password="{}")',
        "spring.datasource.password={}", "url?user=a&password={}", "smtp_pass: {}", "| password | {} |",
    ]),
    "token or key in context": (token, [
        "api_key: {}", "API_KEY={}", "apiKey: '{}'", 'access_token = "{}"', "X-Api-Key: {}", "client_secret={}", "the API key is {}",
        "use the access token {} for it", "- **Token**: {}", "export SERVICE_TOKEN={}", '{{"secret_key": "{}"}}', "--token={}",
        "webhook secret: {}", "auth token `{}`", "encryption_key={}",
    ]),
    "bearer-token": (token, [
        "Authorization: Bearer {}", "-H 'authorization: bearer {}'", '"Authorization": "Bearer {}"', "sent bearer {} to it",
        "headers={{'Authorization': f'Bearer {}'}}",
    ]),
    "authorization": (basic, ["Authorization: Basic {}", '"authorization": "Basic {}"', "Proxy-Authorization: Basic {}"]),
    "connection-string": (token, [
        "postgres://app:{}@db:5432/app", "mongodb+srv://u:{}@c.example/x", "redis://:{}@cache/0", "https://bob:{}@host.example/x",
        "DATABASE_URL=mysql://root:{}@db/x", "amqps://svc:{}@mq", "https://x-token:{}@git.example/a/b.git",
    ]),
}  # fmt: skip
INNOCENT_LINES = [
    "commit {number} fixed the token refresh", "the key: {slug}", "token: {slug}", "- **evidence**: {path} at {number}",
    "cache key: {number}", "{identifier} reads the password from {path}", "password: {identifier}.password", "api_key={slug}",
    "secret scanning of {path} is on", "token = {identifier}(request)", "key={identifier}, reverse=True", "see {path} for the API key",
    "idempotency key {number}", "the secret in {path}", "password hashing in {identifier}", "integrity: {number}",
    "--token-file {path}", "key `{slug}` and key `{identifier}`", "bearer of {slug}", "https://{slug}.example/{path}",
    "Authorization: Bearer <{slug}>", "password: ${{{identifier}}}", "API_KEY=<{slug}>", "primary key {identifier}", "token: {identifier}",
    "secrets.{identifier} is set", "os.environ['{identifier}'] for the token", "password must be {slug}",
]  # fmt: skip
FILLERS = {"number": number, "slug": slug, "path": path, "identifier": identifier}


@pytest.mark.bench
def test_made_lines() -> None:
    random = Random(15)
    rows: dict[str, Row] = {}
    for kind, (value, lines) in SECRET_LINES.items():
        row = rows.setdefault(kind, Row())
        for line in lines:
            for _ in range(60):
                secret = value(random)
                text = line.format(secret)
                start = text.index(secret)
                spans = find_secrets(text)
                whole = any(span.start <= start and start + len(secret) <= span.end for span in spans)
                row.found += whole
                row.missed += not whole
                if not whole:
                    row.places.append(f"missed: in a line like {line}")
                row.wrong += any(not overlap(span, start, start + len(secret)) for span in spans)
    row = rows.setdefault("email", Row())
    for _ in range(400):
        text = f"### [2026-01-05] Pattern: {slug(random)}\n- **evidence**: seen by {address(random)} in {path(random)}\n- {slug(random)}\n"
        row.found += len(find_email_in_evidence(text)) == 1
        row.missed += len(find_email_in_evidence(text)) != 1
    innocent = wrong = 0
    for line in INNOCENT_LINES:
        for _ in range(60):
            text = line.format(**{name: fill(random) for name, fill in FILLERS.items()})
            innocent += 1
            for span in find_secrets(text):
                wrong += 1
                rows.setdefault(span.kind, Row()).wrong += 1
                rows[span.kind].places.append(f"wrong: in a line like {line}")

    show("made lines", rows)
    print(f"innocent lines: {wrong} of {innocent} redacted")
    total = Row(sum(row.found for row in rows.values()), sum(row.missed for row in rows.values()), wrong)
    assert all(rows[kind].recall >= BAR for kind in SECRET_LINES)
    assert total.precision >= BAR


@pytest.mark.bench
@pytest.mark.corpus
def test_real_memory_files() -> None:
    found = [
        f"{path.parent.name}/{path.name}, line {text.count(chr(10), 0, secret.start) + 1}: {secret.kind}"
        for path in sorted(corpus("real-echoes").rglob("*.md"))
        for text in [path.read_text()]
        for secret in find_secrets(text)
    ]

    print("\nredacted in real memory files:", *(found or ["nothing"]), sep="\n  ")
    assert found == []


@pytest.mark.bench
def test_seconds_for_a_thousand_lines() -> None:
    random = Random(7)
    quiet = [
        f"- the {slug(random)} reads {path(random)} and the token budget of {identifier(random)} is kept, see {number(random)}"[
            :110
        ]
        for _ in range(1_000)
    ]
    secret = [
        line if at % 10 > 2 else f"- seen in {path(random)}: password: {password(random)} and more words after it"
        for at, line in enumerate(quiet)
    ]

    print(f"\n{'1,000 lines':34} {'ms':>7}   bar {BAR_SECONDS * 1000:.0f}")
    for name, lines in (("without a secret", quiet), ("with a secret in three of ten", secret)):
        text = "\n".join(lines)
        taken = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            find_secrets(text)
            taken.append(time.perf_counter() - begun)
        print(f"{name:34} {statistics.median(taken) * 1000:7.1f}   best {min(taken) * 1000:.1f}")


# The units that take longest when repeated on one line, of all that tests/memory/test_redact_bombs.py tries.
WORST = [
    "key=",
    "password:",
    "ops_" + "eyJ",
    "password: aB3x9Kq2 ",
    "Authorization: Bearer a1",
    "password: str[",
    "key:'",
]
SIZES = (50_000, 100_000, 200_000, 400_000)


@pytest.mark.bench
def test_seconds_for_texts_made_to_take_long() -> None:
    print(f"\n{'repeated on one line':34} " + " ".join(f"{size // 1000:5} kB" for size in SIZES) + "   (ms)")
    for unit in WORST:
        taken = []
        for size in SIZES:
            text = unit * (size // len(unit))
            begun = time.process_time()
            find_secrets(text)
            taken.append(time.process_time() - begun)
        print(f"{unit:34} " + " ".join(f"{seconds * 1000:8.0f}" for seconds in taken))
