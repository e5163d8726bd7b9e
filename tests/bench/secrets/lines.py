"""Lines of the shapes in which secrets and their innocent look-alikes stand in memory files.

Each is filled with values drawn from a seeded generator that the rules have never seen; this covers what the labelled
texts lack: passwords and tokens in context, bearer tokens, addresses.
"""

from __future__ import annotations

import string
from random import Random

from echod.memory.redact import Secret, find_email_in_evidence, find_secrets
from tests.bench.secrets.counts import Counts

_BASE = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_WORDS = [
    "auth", "parser", "worker", "queue", "cache", "session", "plan", "review", "commit", "branch", "config", "service",
    "handler", "client", "server", "memory", "index", "retry", "timeout", "schema", "table", "column", "user", "account",
    "gateway", "token", "key", "secret", "migration", "feature", "design", "layout", "button",
]  # fmt: skip


def password(random: Random) -> str:
    """Words with numbers and marks as people make them, or drawn characters as managers do."""
    word = random.choice(
        ["hunter", "Winter", "correct", "dragon", "Tr0ub4dor", "letmein", "Passw0rd", "sunny", "qwerty"]
    )
    drawn = "".join(random.choices(_BASE + "!@#$%^*_-+?.", k=random.randint(8, 24)))
    made = f"{word}{random.choice(['', '!', '_', '-', '#'])}{random.randint(1, 2030)}"
    return random.choice([made, made, _BASE[random.randrange(52)] + drawn + "7k"])


def _token(random: Random) -> str:
    alphabet = random.choice([_BASE, _BASE, _BASE + "-_", _HEX, string.ascii_lowercase + string.digits])
    return "".join(random.choices(alphabet, k=random.choice([24, 32, 40, 43, 64])))


def _basic(random: Random) -> str:
    return "".join(random.choices(_BASE, k=random.choice([16, 24, 32]))) + "=="


def _address(random: Random) -> str:
    return f"{random.choice(_WORDS)}{random.choice(['.', '_', '+', ''])}{random.choice(_WORDS)}@{random.choice(_WORDS)}.example"


def slug(random: Random) -> str:
    return random.choice("-_").join(random.choices(_WORDS, k=random.randint(3, 7))) + random.choice(
        ["", "-v2", "_2026", "-12"]
    )


def path(random: Random) -> str:
    return "/".join(random.choices(_WORDS, k=random.randint(2, 4))) + random.choice([".py", ".md:12", "_test.go", ""])


def number(random: Random) -> str:
    """What git, checksums and databases write: 7 to 64 hexadecimal digits, a UUID, a digest with its name."""
    digits = "".join(random.choices(_HEX, k=64))
    return random.choice(
        [digits[:7], digits[:12], digits[:40], digits,
         f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}", f"sha256:{digits}",
         "sha512-" + "".join(random.choices(_BASE + "+/", k=86)) + "=="]
    )  # fmt: skip


def identifier(random: Random) -> str:
    words = random.choices(_WORDS, k=random.randint(2, 4))
    return random.choice(
        [
            "".join(map(str.title, words)),
            words[0] + "".join(map(str.title, words[1:])),
            "_".join(words),
            ".".join(words),
        ]
    )


_SECRET_LINES = {
    "password": (password, [
        "password: {}", "- **Password**: {}", "DB_PASSWORD={}", "export PGPASSWORD='{}'", '"password": "{}",', "pwd={};db=x",
        "the password is {} for now", "set the admin password to `{}`", "mysql --password={} -h db", 'login(user, password="{}")',
        "spring.datasource.password={}", "url?user=a&password={}", "smtp_pass: {}", "| password | {} |",
    ]),
    "token or key in context": (_token, [
        "api_key: {}", "API_KEY={}", "apiKey: '{}'", 'access_token = "{}"', "X-Api-Key: {}", "client_secret={}", "the API key is {}",
        "use the access token {} for it", "- **Token**: {}", "export SERVICE_TOKEN={}", '{{"secret_key": "{}"}}', "--token={}",
        "webhook secret: {}", "auth token `{}`", "encryption_key={}",
    ]),
    "bearer-token": (_token, [
        "Authorization: Bearer {}", "-H 'authorization: bearer {}'", '"Authorization": "Bearer {}"', "sent bearer {} to it",
        "headers={{'Authorization': f'Bearer {}'}}",
    ]),
    "authorization": (_basic, ["Authorization: Basic {}", '"authorization": "Basic {}"', "Proxy-Authorization: Basic {}"]),
    "connection-string": (_token, [
        "postgres://app:{}@db:5432/app", "mongodb+srv://u:{}@c.example/x", "redis://:{}@cache/0", "https://bob:{}@host.example/x",
        "DATABASE_URL=mysql://root:{}@db/x", "amqps://svc:{}@mq", "https://x-token:{}@git.example/a/b.git",
    ]),
}  # fmt: skip
_INNOCENT_LINES = [
    "commit {number} fixed the token refresh", "the key: {slug}", "token: {slug}", "- **evidence**: {path} at {number}",
    "cache key: {number}", "{identifier} reads the password from {path}", "password: {identifier}.password", "api_key={slug}",
    "secret scanning of {path} is on", "token = {identifier}(request)", "key={identifier}, reverse=True", "see {path} for the API key",
    "idempotency key {number}", "the secret in {path}", "password hashing in {identifier}", "integrity: {number}",
    "--token-file {path}", "key `{slug}` and key `{identifier}`", "bearer of {slug}", "https://{slug}.example/{path}",
    "Authorization: Bearer <{slug}>", "password: ${{{identifier}}}", "API_KEY=<{slug}>", "primary key {identifier}", "token: {identifier}",
    "secrets.{identifier} is set", "os.environ['{identifier}'] for the token", "password must be {slug}",
]  # fmt: skip
_FILLERS = {"number": number, "slug": slug, "path": path, "identifier": identifier}


_EACH = 60
_ADDRESSES = 400


def count_made() -> tuple[dict[str, Counts], int, int]:
    """The counts of each kind; how many places were redacted in how many innocent lines."""
    random = Random(15)
    kinds: dict[str, Counts] = {}
    for kind, (value, lines) in _SECRET_LINES.items():
        counts = kinds.setdefault(kind, Counts())
        for line in lines:
            for _ in range(_EACH):
                _count(line, value(random), counts)
    _count_addresses(random, kinds.setdefault("email", Counts()))
    innocent = wrong = 0
    for line in _INNOCENT_LINES:
        for _ in range(_EACH):
            text = line.format(**{name: fill(random) for name, fill in _FILLERS.items()})
            innocent += 1
            for span in find_secrets(text):
                wrong += 1
                counts = kinds.setdefault(span.kind, Counts())
                counts.wrong += 1
                counts.places.append(f"wrong: in a line like {line}")
    return kinds, wrong, innocent


def _count(line: str, secret: str, counts: Counts) -> None:
    text = line.format(secret)
    start = text.index(secret)
    end = start + len(secret)
    spans = find_secrets(text)
    if any(span.start <= start and end <= span.end for span in spans):
        counts.found += 1
    else:
        counts.missed += 1
        counts.places.append(f"missed: in a line like {line}")
    counts.wrong += any(not _overlap(span, start, end) for span in spans)


def _count_addresses(random: Random, counts: Counts) -> None:
    for _ in range(_ADDRESSES):
        text = (
            f"### [2026-01-05] Pattern: {slug(random)}\n- **evidence**: seen by {_address(random)} in {path(random)}\n"
            f"- {slug(random)}\n"
        )
        found = len(find_email_in_evidence(text)) == 1
        counts.found += found
        counts.missed += not found


def _overlap(span: Secret, start: int, end: int) -> bool:
    return span.start < end and start < span.end
