"""Tokens that are known by their form, whatever stands around them.

To add a vendor, add one `Shape` with its fixed beginning and a pattern for the rest, and one line to the examples in
the tests. A pattern is matched only where the beginning stands. It is atomic and takes the
whole run of token characters, so that no rest of a secret is left behind; what must be followed by something else is
bounded (`{8,2000}`), so that time stays linear.

Credentials inside a URL or a connection string: `scheme://user:password@host`.

Only the credential is taken; the scheme, the user and the host stay, for they carry the knowledge.

Credentials in the places that programs have for them: Authorization headers, `curl -u`, `sshpass -p`, netrc.

Private keys in text armour (PEM, OpenSSH, PGP), whole or cut off before their end.

The one rule that may take several lines. It takes the armour's own lines only, so a Markdown fence around a key stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from echod.memory.redact.plausibility import is_code, is_description, is_mixed, is_placeholder, is_word, looks_random
from echod.memory.redact.spans import Secret, first_of_overlapping, lowered, places


class Shape(NamedTuple):
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


_AUTHORITY = re.compile(r"[^\s/?#\"'`<>|\\\uffff]{1,512}")
_SHORTEST_TOKEN = 16


def find_url_credentials(text: str) -> list[Secret]:
    """The password of each URL that carries one, or a token in the place of the user."""
    return [
        secret
        for at in places(text, "://")
        if (authority := _AUTHORITY.match(text, at + 3))
        and "@" in authority[0]
        and (secret := _credential(authority[0], at + 3))
    ]


def _credential(authority: str, offset: int) -> Secret | None:
    userinfo, _, _host = authority.rpartition("@")
    user, colon, password = userinfo.partition(":")
    if colon:
        if not password or is_placeholder(password):
            return None
        start = offset + len(user) + 1
        return Secret("connection-string", start, start + len(password))
    if looks_random(user, at_least=_SHORTEST_TOKEN):
        return Secret("connection-string", offset, offset + len(user))
    return None


class Place(NamedTuple):
    """A pattern with a group `value`, matched where one of the words stands; `accepts` looks at the value."""

    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool]


_SHORTEST = 6
_SHORTEST_WORD = 16
_TOKEN = rf"(?P<value>[A-Za-z0-9._~+/=:-]{{{_SHORTEST},2048}})"
_GIVEN = r"(?P<value>[^\s\"'`\uffff]{1,128})"
_STANDARD = re.compile(r"[A-Z]{2,5}-?[0-9]{1,5}")  # RFC6750
_RUN = re.compile(r"[A-Za-z0-9]+")


def _is_token(value: str) -> bool:
    """Whether what follows "bearer" is a token and not the next word of a sentence."""
    if is_word(value) and not looks_random(value, at_least=_SHORTEST_WORD):
        return False
    if is_placeholder(value) or is_code(value) or is_description(value) or _STANDARD.fullmatch(value):
        return False
    return any(is_mixed(run, at_least=2) for run in _RUN.findall(value)) or looks_random(value, at_least=_SHORTEST)


def _is_header(value: str) -> bool:
    """Whether what follows "Authorization:" is a credential; there, a long run of letters is one too."""
    if not value.isalpha() or is_placeholder(value):
        return _is_token(value)
    return len(value) >= _SHORTEST_WORD or looks_random(value, at_least=_SHORTEST)


def _is_given(value: str) -> bool:
    return not is_placeholder(value)


def _place(kind: str, words: tuple[str, ...], pattern: str, accepts: Callable[[str], bool]) -> Place:
    return Place(kind, words, re.compile(pattern, re.IGNORECASE), accepts)


_HEADER = r"authorization\\?[\"'\]]{0,3}[ \t]{0,4}[:=,][ \t]{0,4}[bf]?\\?[\"'`]?"

PLACES = (
    _place("bearer-token", ("authorization",), rf"{_HEADER}bearer[ \t]{{1,4}}{_TOKEN}", _is_header),
    _place(
        "bearer-token", ("bearer",), rf"bearer(?:[ \t]{{1,4}}|[ \t]{{0,2}}[:=][ \t]{{0,2}}[\"'`]?){_TOKEN}", _is_token
    ),
    _place(
        "authorization",
        ("authorization",),
        rf"{_HEADER}(?:(?:basic|token|digest|apikey|api-key|key|bot)[ \t]{{1,4}})?{_TOKEN}",
        _is_header,
    ),
    _place(
        "password",
        (" -u", " --user", " --proxy-user"),
        rf" -{{1,2}}[a-z-]{{1,10}}[ =]{{0,2}}[\"']?[^\s:\"'@/\uffff]{{1,64}}:{_GIVEN}",
        _is_given,
    ),
    _place("password", ("sshpass",), rf"sshpass[ \t]+-p[ \t]{{0,2}}[\"']?{_GIVEN}", _is_given),
    _place("password", ("login ",), rf"login[ \t]+[^\s\uffff]{{1,64}}[ \t]+password[ \t]+{_GIVEN}", _is_given),
    _place("token", ("sig=", "x-amz-signature="), r"[a-z-]{3,15}=(?P<value>[A-Za-z0-9%+/_-]{32,256}={0,2})", _is_token),
)


def find_header_credentials(text: str) -> list[Secret]:
    """Every credential that stands in one of the places."""
    lower = lowered(text)
    return first_of_overlapping(
        Secret(place.kind, match.start("value"), match.start("value") + len(value))
        for place in PLACES
        for word in place.words
        for at in places(lower, word)
        if (match := place.pattern.match(text, at)) and place.accepts(value := match["value"].rstrip(".,:"))
    )


# Between the lines of a key stand line breaks, and what quoting adds: blanks, `>`, string quotes, `+`, backslashes.
_BETWEEN = r"[\s\"'\\>+,|]"
_LABEL = r"(?:[A-Z0-9]{1,12}[ ]){0,4}PRIVATE[ ]KEY(?:[ ]BLOCK)?[ ]?-{4,5}"
_LINE = r"[A-Za-z0-9+/=]{16,}+"
_ARMOUR = re.compile(
    rf"""-{{4,5}}[ ]?BEGIN[ ]{_LABEL}
        (?:{_BETWEEN}{{1,64}}[A-Z][A-Za-z0-9-]{{1,30}}:[ ][^\n\uffff]{{0,120}}(?=\n)){{0,8}}    # Proc-Type: 4,ENCRYPTED
        (?P<body>(?:{_BETWEEN}{{0,64}}{_LINE})++)
        (?: (?:{_BETWEEN}{{1,64}}[A-Za-z0-9+/=]{{1,15}}+)? {_BETWEEN}{{0,64}}-{{4,5}}[ ]?END[ ]{_LABEL} )?
    """,
    re.VERBOSE,
)
_LINES = re.compile(_LINE)

_LEAST_MATERIAL = 56
"""Characters of base64: the smallest private key (Ed25519, 48 bytes) has 64; less is a placeholder."""


def find_private_keys(text: str) -> list[Secret]:
    """Every armoured private key that holds key material."""
    if "PRIVATE KEY" not in text:
        return []
    return [
        Secret("private-key", key.start(), key.end())
        for key in _ARMOUR.finditer(text)
        if sum(map(len, _LINES.findall(key["body"]))) >= _LEAST_MATERIAL
    ]
