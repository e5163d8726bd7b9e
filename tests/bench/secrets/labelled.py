"""Texts of a secret linter with the character ranges of fake secrets: what is found of them, what is found beside them.

A text counts by overlap; nothing of a text is shown, only its name and position.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from echod.memory.redact import Secret, find_secrets
from tests.bench.secrets.counts import Counts

# The labels' rules and the kinds that answer to them.
_KINDS = {
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
_SKIPPED = {
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
_UNLABELLED = {
    ("ng.mysql", "password"): "a password beside the URL that is labelled",
    ("ng.postgresql", "password"): "a password beside the URL that is labelled",
    ("ng.real-credentials", "connection-string"): "a password that holds an @ or a !",
    ("ok.database-urls-not-detected", "connection-string"): "a password left to the rule for connection strings",
    ("secretlint-rule-openai/ok.valid", "openai-key"): "a key without the marker that newer keys of the vendor carry",
}


def count_labelled(corpus: Path) -> tuple[dict[str, Counts], tuple[str, ...]]:
    """The counts of each kind, and sentences about what was left out and why."""
    counts: dict[str, Counts] = {}
    skipped: Counter[str] = Counter()
    for text in _labelled(corpus):
        reason = next((why for part, why in _SKIPPED.items() if part in text["name"]), None)
        if reason is not None:
            skipped[reason] += 1
            continue
        _count(text, counts)
    notes = [f"skipped {count}: {reason}" for reason, count in skipped.items()]
    notes += [f"not counted: {kind} in {part}: {why}" for (part, kind), why in _UNLABELLED.items()]
    return counts, tuple(notes)


def _count(text: dict[str, Any], counts: dict[str, Counts]) -> None:
    secrets = find_secrets(text["text"])
    for label in text["secrets"]:
        kind = counts.setdefault(_KINDS[label["rule"].removeprefix("secretlint-rule-")], Counts())
        if any(_overlap(secret, label) for secret in secrets):
            kind.found += 1
        else:
            kind.missed += 1
            kind.places.append(f"missed: {text['name']} at {label['start']}")
    for secret in secrets:
        if any(_overlap(secret, label) for label in text["secrets"]):
            continue
        if any(part in text["name"] and name == secret.kind for part, name in _UNLABELLED):
            continue
        name = next((name for name in counts if secret.kind in name.split(", ")), secret.kind)
        kind = counts.setdefault(name, Counts())
        kind.wrong += 1
        kind.places.append(f"wrong: {text['name']} at {secret.start}")


def _labelled(corpus: Path) -> list[dict[str, Any]]:
    """Each different text once."""
    texts = json.loads(gzip.decompress((corpus / "secrets/labelled.json.gz").read_bytes()))
    different = {(text["text"], json.dumps(text["secrets"])): text for text in reversed(texts)}
    return list(reversed(different.values()))


def _overlap(secret: Secret, label: dict[str, Any]) -> bool:
    return bool(secret.start < label["end"] and label["start"] < secret.end)
