"""Detect entries that read like an instruction to agents instead of a learning.

Such an entry is flagged for the user and never promoted automatically. It is neither changed nor removed, because the
detection judges words and is sometimes wrong. English only. To add a phrase, add a rule to the table, and to the tests
an example of it and an innocent one that is similar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.text import hides_text, normalize_characters

_HIDDEN_TEXT = "hidden text"
_NEGATION = r"\b(?:do not|don't|never|must not|no need to)"
_READER = r"(?:ai|llm|agents?|assistants?|models?|claude|copilot|language models?|chatbots?|coding agents?)"
_USER = r"(?:users?|humans?|operator|person|owner|maintainers?|reviewers?|anyone|anybody)"
_FEW_WORDS = r"(?: \w{1,20}){0,2}"
_EMPHASIS = lazy_pattern(r"[*_`>\"\u201c\u201d]+")


class InjectionRule(NamedTuple):
    """A pattern and a description for the user of entries that match it.

    Every match contains one of the `keywords`. Searching for the keywords of all rules costs a tenth of matching their
    patterns, and nearly every text has none of them.
    """

    description: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(description: str, keywords: str, *parts: str) -> InjectionRule:
    return InjectionRule(description, tuple(keywords.split("|")), lazy_pattern("".join(parts)))


# Matched against lower-case text with collapsed spaces, without emphasis and quotes. Every repetition is bounded.
PHRASE_RULES = (
    _rule(
        "overrides instructions",
        "instruction|prompt|directive|guardrail|system message",
        r"\b(?:ignore|disregard|forget|override|bypass|discard|stop following|(?:do not|don't) (?:follow|obey))",
        r" (?:all |any |every |each |of |the |these |those |your |my |our |and ){0,4}",
        r"(?:previous|prior|above|earlier|preceding|existing|foregoing|original|initial|system|safety|other|your)",
        r"(?: and \w{1,20})?(?: [\w-]{1,20}){0,2} (?:instructions?|prompts?|directives?|guardrails|system messages?)\b",
    ),
    _rule(
        "overrides instructions",
        "ignore |disregard |forget ",
        r"\b(?:ignore|disregard|forget) (?:all |any )?(?:of )?(?:your|the above|everything (?:above|before|you))",
        rf"{_FEW_WORDS} (?:rules|guidelines|instructions?|training|context|told|constraints|restrictions)\b",
    ),
    _rule(
        "overrides instructions",
        "everything above|everything before this|everything so far",
        r"\b(?:ignore|disregard|forget) everything (?:above|before this|so far)\b",
    ),
    _rule("overrides instructions", "your new ", r"\byour new (?:system )?(?:instructions|directives|orders)\b"),
    _rule(
        "overrides instructions",
        "instructions: |directives: |orders: ",
        r"\bnew (?:system )?(?:instructions|directives|orders): ",
    ),
    _rule(
        "assigns a role",
        "you are now ",
        r"\byou are now (?:an? |the |in |my |our )?(?:\w{1,20} ){0,2}(?:ai|assistant|agent|model|bot|hacker|expert",
        r"|admin(?:istrator)?|root|dan|jailbroken|unrestricted|developer mode|persona)\b",
    ),
    _rule("assigns a role", "from now on", r"\bfrom now on,? you (?:are|will|must|shall|should|may)\b"),
    _rule(
        "assigns a role",
        "as if you |unrestricted|uncensored|jailbroken|evil|root",
        r"\b(?:act|behave|respond) as (?:if you (?:are|were|have)",
        r"|an? (?:unrestricted|uncensored|jailbroken|evil|root))\b",
    ),
    _rule("assigns a role", "pretend ", r"\bpretend (?:that )?(?:to be|you(?: are|'re)) "),
    _rule(
        "assigns a role",
        "do anything now|dan mode|developer mode|jailbreak mode",
        r"\b(?:do anything now|dan mode|developer mode (?:is )?(?:enabled|on)|jailbreak mode)\b",
    ),
    _rule(
        "asks for the system prompt",
        "system prompt|hidden prompt|initial prompt|system message|initial instructions",
        r"\b(?:reveal|print|repeat|output|leak|dump|show me|tell me|display|disclose|copy|recite)\b.{0,30}",
        r"\b(?:system prompt|hidden prompt|initial prompt|system message|initial instructions)\b",
    ),
    _rule(
        "asks for the system prompt",
        "your system prompt|your initial instructions|your hidden instructions",
        r"\byour (?:system prompt|initial instructions|hidden instructions)\b",
    ),
    _rule(
        "asks for secrecy",
        "do not|don't|never|must not|no need to",
        rf"{_NEGATION} (?:tell|inform|alert|let) (?:the |your |any )?{_USER}",
        r"(?: (?:about|of|that|know|see|notice|this|anything)\b|[.!]| ?$)",
    ),
    _rule(
        "asks for secrecy",
        "do not|don't|never|must not|no need to",
        rf"{_NEGATION} (?:mention|reveal|disclose|report|admit|show) (?:this|these|it|any of this)",
        rf"{_FEW_WORDS} to (?:the |your )?{_USER}\b",
    ),
    _rule(
        "asks for secrecy",
        "without telling|without informing|without asking|without notifying|without alerting|without the knowledge",
        r"\bwithout (?:telling|informing|asking|notifying|alerting|the knowledge of)",
        r" (?:the |your |any )?(?:user|human|operator|owner)\b",
    ),
    _rule(
        "asks for secrecy",
        "hide |conceal |keep ",
        rf"\b(?:hide|conceal|keep) (?:this|these|it|that){_FEW_WORDS} from (?:the |your )?{_USER}\b",
    ),
    _rule(
        "waives consent",
        "permission|confirmation|approval|consent",
        rf"{_NEGATION} (?:ask|wait|prompt|stop)(?: \w{{1,20}}){{0,3}} for (?:\w{{1,20}} ){{0,2}}",
        r"(?:permission|confirmation|approval|consent)\b",
    ),
    _rule(
        "waives consent",
        "you have |you now have ",
        r"\byou (?:now )?have (?:been granted )?(?:full|unrestricted|unlimited|root|admin)",
        r" (?:access|permissions?|privileges|rights)\b",
    ),
    _rule(
        "waives consent",
        "tool call|tool use|permission",
        r"\b(?:approve|accept|allow|grant) (?:all|any|every) (?:future )?",
        r"(?:tool (?:calls?|uses?)|permission(?:s| requests?| prompts?))\b",
    ),
    _rule(
        "addresses the reader",
        "attention|message|note|instruction|notice",
        r"\b(?:attention|message|note|instructions?|notice)(?: to| for|,)? (?:all |any |every |the )?",
        rf"{_READER}(?: reading this)?[:!,]",
    ),
    _rule(
        "addresses the reader",
        "if you",
        rf"\bif you(?: are|'re) (?:an? )?{_READER}\b.{{0,20}}(?:reading|processing|,|then|you)",
    ),
    _rule("addresses the reader", "dear |hey |hello ", rf"\b(?:dear|hey|hello) {_READER}\b"),
    _rule(
        "addresses the reader",
        "reading this|reads this|processing this",
        rf"\bany {_READER} (?:reading|that reads|who reads|processing) this\b",
    ),
    _rule(
        "asks to send secrets",
        "secret|credential|api key|token|password|environment variable|private key|ssh key",
        r"\b(?:send|post|upload|exfiltrate|forward|e-?mail|transmit|leak|pipe|curl)\b.{0,60}",
        r"\b(?:secrets?|credentials?|api keys?|tokens?|passwords?|environment variables|(?:private|ssh) keys?)\b",
        r".{0,60}(?:https?://|\bto [\w.+-]{1,64}@)",
    ),
    _rule(
        "asks to be copied",
        "this instruction|this message|this prompt|this text|this entry|this note|this line",
        r"\b(?:copy|repeat|add|append|write|insert|include|paste)",
        r" this (?:instruction|message|prompt|text|entry|note|line)s?",
        rf"{_FEW_WORDS} (?:in|into|to|at the (?:top|end) of) (?:every|all|each|any|your)\b",
    ),
    _rule(
        "asks to run hidden code",
        "decode|deobfuscate|decrypt",
        r"\b(?:decode|deobfuscate|decrypt)\b.{0,60}\b(?:base64|rot13|hex|payload)\b",
        r".{0,30}\band (?:execute|run|eval|follow|obey)\b",
    ),
)

# Markup that only conversations between a program and a model contain. Matched against the lower-case text.
MARKUP_RULES = (
    _rule(
        "tool-call markup",
        "function_call|tool_call|tool_use|tool_result|function_result",
        r"</?(?:[a-z]{1,12}:)?(?:function_calls?|tool_calls?|tool_use|tool_results?|function_results?)\b",
    ),
    _rule("tool-call markup", "invoke name=|parameter name=", r"<(?:[a-z]{1,12}:)?(?:invoke|parameter) name="),
    _rule("tool-call markup", '"type"', r"\"type\" ?: ?\"tool_(?:use|result)\""),
    _rule(
        "conversation markup",
        "system>|system-reminder>|system_prompt>|system-prompt>",
        r"</?system(?:-reminder|_prompt|-prompt)?>",
    ),
    _rule(
        "conversation markup", "<|", r"<\|(?:im_start|im_end|system|assistant|user|endoftext|eot_id|start_header_id)\|>"
    ),
    _rule("conversation markup", "inst]|sys>", r"\[/?inst\]|<</?sys>>"),
    _rule("conversation markup", "human: ", r"(?:^|\n)human: .{0,200}\n{1,3}assistant:"),
)

_PHRASE_KEYWORDS = frozenset(word for rule in PHRASE_RULES for word in rule.keywords)
_MARKUP_KEYWORDS = frozenset(word for rule in MARKUP_RULES for word in rule.keywords)


def find_injection(text: str) -> str | None:
    """Return why an entry reads like an instruction to agents, in a few words for the user; None if it does not."""
    if hides_text(text):
        return _HIDDEN_TEXT
    plain = _normalize(text)
    markup = _first_match(MARKUP_RULES, _MARKUP_KEYWORDS, plain)
    return markup or _first_match(PHRASE_RULES, _PHRASE_KEYWORDS, _strip_emphasis(plain))


def might_contain_injection(text: str) -> bool:
    """Return whether a whole file can contain such an entry, at a fraction of the cost of parsing the file."""
    plain = _normalize(text)
    words = _strip_emphasis(plain)
    has_keyword = any(word in plain for word in _MARKUP_KEYWORDS) or any(word in words for word in _PHRASE_KEYWORDS)
    return has_keyword or hides_text(text)


def _normalize(text: str) -> str:
    return normalize_characters(text)[0].lower().replace("\u2019", "'")


def _strip_emphasis(plain: str) -> str:
    return " ".join(_EMPHASIS.sub(" ", plain).split())


def _first_match(rules: Sequence[InjectionRule], keywords: frozenset[str], text: str) -> str | None:
    """Return the description of the first rule that matches."""
    present = {word for word in keywords if word in text}
    if not present:
        return None
    possible = (rule for rule in rules if not present.isdisjoint(rule.keywords))
    return next((rule.description for rule in possible if rule.pattern.search(text)), None)
