"""Tokens that are known by their form, whatever stands around them.

To add a vendor, add one `Shape` with its fixed beginning and a pattern for the rest, and one line to the examples in
the tests. A pattern is matched only where the beginning stands. It is atomic and takes the
whole run of token characters, so that no rest of a secret is left behind; what must be followed by something else is
bounded (`{8,2000}`), so that time stays linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from echod.memory.redact.scan import first_of_overlapping, places
from echod.memory.redact.values import Secret


@dataclass(frozen=True, slots=True)
class Shape:
    """A token form: any of the beginnings, then the pattern, which must not end within a longer word."""

    kind: str
    beginnings: tuple[str, ...]
    rest: re.Pattern[str]


def _shape(kind: str, beginnings: str, rest: str) -> Shape:
    """A form of open length: `ghp_xxxxxxxx` has it too, so a rest that is crossed out is no token."""
    return _exact_shape(kind, beginnings, rf"(?![A-Za-z0-9_-]{{0,12}}[xX]{{6}})(?:{rest})")


def _exact_shape(kind: str, beginnings: str, rest: str) -> Shape:
    """A form of one length: what has it is taken, whatever it is made of."""
    return Shape(kind, tuple(beginnings.split()), re.compile(rf"(?>{rest})(?![A-Za-z0-9_])"))


_JWT = r"[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]*"

SHAPES = (
    _shape("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{20,}"),
    _shape("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{20,}"),
    _shape("openai-key", "sk-", r"[A-Za-z0-9]{20,}"),
    _shape("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{24,}"),
    _shape("stripe-key", "whsec_", r"[A-Za-z0-9+/]{24,}={0,2}"),
    _exact_shape("aws-access-key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    _shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}"),
    _shape("github-token", "ghs_", rf"[0-9]{{1,20}}_eyJ{_JWT}"),
    _shape("github-token", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    _shape(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glsoat- gloas- glagent-",
        r"[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{2,40}){0,3}",
    ),
    _shape("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-", r"[A-Za-z0-9%_-]{16,}"),
    _shape("slack-webhook", "hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    _shape("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,}"),
    _shape("npm-token", "npm_", r"[A-Za-z0-9]{30,}"),
    _exact_shape("huggingface-token", "hf_ api_org_", r"[A-Za-z]{34}"),
    _shape("google-api-key", "AIza", r"[A-Za-z0-9_-]{30,}"),
    _shape("google-oauth-token", "ya29.", r"[A-Za-z0-9_-]{20,}"),
    _shape("google-oauth-secret", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    _shape("jwt", "eyJ", _JWT),
    # Services without a kind of their own, by the beginnings that nothing else has.
    _shape("api-key", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{20,}"),  # HashiCorp Vault
    _shape("api-key", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,}"),  # Docker
    _exact_shape("api-key", "dapi", r"[a-fA-F0-9]{32}(?:-[0-9])?"),  # Databricks
    _shape("api-key", "glsa_ glc_", r"[A-Za-z0-9_+/=]{24,}"),  # Grafana
    _shape("api-key", "gsk_", r"[A-Za-z0-9]{40,}"),  # Groq
    _shape("api-key", "xai-", r"[A-Za-z0-9]{40,}"),  # xAI
    _shape("api-key", "r8_", r"[A-Za-z0-9]{30,}"),  # Replicate
    _shape("api-key", "sk-or-v1-", r"[a-f0-9]{40,}"),  # OpenRouter
    _shape("api-key", "figd_", r"[A-Za-z0-9_-]{30,}"),  # Figma
    _exact_shape("api-key", "ntn_", r"[0-9]{11}[A-Za-z0-9]{35}"),  # Notion
    _shape("api-key", "lin_api_", r"[A-Za-z0-9]{30,}"),  # Linear
    _shape("api-key", "shpat_ shpca_ shppa_ shpss_", r"[A-Za-z0-9]{30,}"),  # Shopify
    _shape("api-key", "tskey-", r"[a-z]{2,12}-[A-Za-z0-9]{8,40}-[A-Za-z0-9]{16,}"),  # Tailscale
    _shape("api-key", "vcp_ vci_ vca_ vcr_ vck_", r"[A-Za-z0-9]{24,}"),  # Vercel
    _shape("api-key", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{64}"),  # DigitalOcean
    _shape("api-key", "ops_eyJ", r"[A-Za-z0-9_-]{100,}"),  # 1Password
    _shape("api-key", "pypi-AgE", r"[A-Za-z0-9_-]{50,}"),  # Python packages
    _shape("api-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),  # age
)

_BEGINNINGS = tuple((beginning, shape) for shape in SHAPES for beginning in shape.beginnings)
_WORD_BEFORE = re.compile(r"[A-Za-z0-9]")


def find_shapes(text: str) -> list[Secret]:
    """Every token of a known form; where two forms claim the same beginning, the first in the table has it."""
    present = [named for named in _BEGINNINGS if named[0] in text]
    return first_of_overlapping(secret for named in present for secret in _matches(*named, text))


def _matches(beginning: str, shape: Shape, text: str) -> Iterator[Secret]:
    done = 0
    for at in places(text, beginning):
        if at < done or (at and _WORD_BEFORE.match(text, at - 1)):
            continue
        match = shape.rest.match(text, at + len(beginning))
        if match is not None:
            done = match.end()
            yield Secret(shape.kind, at, done)
