"""Tokens that are known by their form, whatever stands around them.

To add a vendor, add one `Shape` with its fixed beginning and a pattern for the rest, and one line to the examples in
the tests. Patterns are matched only where the beginning stands, must be bounded (`{20,255}`, never `+`) so that time
stays linear, and take the whole run of token characters so that no rest of a secret is left behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from echod.memory.redact.innocent import is_filler
from echod.memory.redact.values import Secret


@dataclass(frozen=True, slots=True)
class Shape:
    """A token form: any of the beginnings, then the pattern, which must not end within a longer word."""

    kind: str
    beginnings: tuple[str, ...]
    rest: re.Pattern[str]


def _shape(kind: str, beginnings: str, rest: str) -> Shape:
    return Shape(kind, tuple(beginnings.split()), re.compile(rf"(?:{rest})(?![A-Za-z0-9_])"))


SHAPES = (
    _shape("anthropic-key", "sk-ant-", r"[A-Za-z0-9]{3,10}[0-9]{2}-[A-Za-z0-9_-]{20,255}"),
    _shape("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{20,255}"),
    _shape("openai-key", "sk-", r"[A-Za-z0-9]{20,100}"),
    _shape("api-key", "sk-", r"(?=[a-z0-9-]{0,24}[0-9A-Z])[A-Za-z0-9_-]{24,255}"),
    _shape("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{16,255}"),
    _shape("stripe-key", "whsec_", r"[A-Za-z0-9+/=]{24,255}"),
    _shape("aws-access-key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    _shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,255}"),
    _shape(
        "github-token", "ghs_", r"[0-9]{1,20}_eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000}"
    ),
    _shape("github-token", "github_pat_", r"[A-Za-z0-9_]{40,255}"),
    _shape(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- glsoat- gloas-",
        r"[A-Za-z0-9_.-]{20,255}",
    ),
    _shape(
        "slack-token", "xoxa- xoxb- xoxp- xoxo- xoxr- xoxs- xoxe. xoxe- xoxc- xoxd- xapp-", r"[A-Za-z0-9%._-]{16,400}"
    ),
    _shape(
        "slack-webhook",
        "hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/",
        r"[A-Za-z0-9]{6,20}/[A-Za-z0-9]{6,20}/[A-Za-z0-9/]{8,80}",
    ),
    _shape("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _shape("npm-token", "npm_", r"[A-Za-z0-9]{36,100}"),
    _shape("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{30,60}"),
    _shape("google-api-key", "AIza", r"[A-Za-z0-9_-]{35}"),
    _shape("google-oauth-token", "ya29.", r"[A-Za-z0-9_-]{20,512}"),
    _shape("google-oauth-secret", "GOCSPX-", r"[A-Za-z0-9_-]{20,60}"),
    _shape("jwt", "eyJ", r"[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{0,2000}"),
)

_WORD = re.compile(r"[A-Za-z0-9_]")


def find_shapes(text: str) -> list[Secret]:
    """Every token of a known form; where two forms claim the same beginning, the first in the table has it."""
    found: list[Secret] = []
    end = 0
    candidates = [secret for shape in SHAPES for secret in _matches(shape, text)]
    for secret in sorted(candidates, key=lambda secret: secret.start):
        if secret.start >= end:
            found.append(secret)
            end = secret.end
    return found


def _matches(shape: Shape, text: str) -> Iterator[Secret]:
    for beginning in shape.beginnings:
        at = text.find(beginning)
        while at >= 0:
            after = at + len(beginning)
            match = None if at and _WORD.match(text, at - 1) else shape.rest.match(text, after)
            if match is not None and not is_filler(match[0]):
                yield Secret(shape.kind, at, match.end())
                after = match.end()
            at = text.find(beginning, after)
