"""Tells whether an entry reads like an instruction to agents instead of a learning.

Such an entry is flagged for a person and never raised automatically; it is neither changed nor removed, for this is a
judgement about words and will be wrong at times. English only. To add a phrase, add a line to the table and an example
of it, and of an innocent neighbour, to the tests.
"""

from __future__ import annotations

import re

from echod.memory.disguise import hides_text, unfold

HIDDEN_TEXT = "hidden text"

_READER = r"(?:ai|llm|agents?|assistants?|models?|claude|copilot|language models?|chatbots?|coding agents?)"
_PERSON = r"(?:users?|humans?|operator|person|owner|maintainers?|reviewers?|anyone|anybody)"

# Matched against the text in lower case, blanks collapsed, Markdown emphasis gone. Every repetition is bounded.
_PHRASES = (
    (
        "overrides instructions",
        r"\b(?:ignore|disregard|forget|override|bypass|discard|stop following|(?:do not|don't) (?:follow|obey))"
        r" (?:all |any |every |each |of |the |these |those |your |my |our |and ){0,4}"
        r"(?:previous|prior|above|earlier|preceding|existing|foregoing|original|initial|system|safety|other|your)"
        r"(?: and \w{1,20})?(?: [\w-]{1,20}){0,2} (?:instructions?|prompts?|directives?|guardrails|system messages?)\b",
    ),
    (
        "overrides instructions",
        r"\b(?:ignore|disregard|forget) (?:all |any )?(?:of )?(?:your|the above|everything (?:above|before|you))"
        r"(?: \w{1,20}){0,2} (?:rules|guidelines|instructions?|training|context|told|constraints|restrictions)\b",
    ),
    (
        "overrides instructions",
        r"\b(?:ignore|disregard|forget) everything (?:above|before this|you (?:were|have been) told)",
    ),
    ("overrides instructions", r"\b(?:your )?new (?:system )?(?:instructions|directives|orders)(?: are)?: "),
    (
        "assigns a role",
        r"\byou are now (?:an? |the |in |my |our )?(?:\w{1,20} ){0,2}"
        r"(?:ai|assistant|agent|model|bot|hacker|expert|admin(?:istrator)?|root|dan|jailbroken|unrestricted|developer mode|persona)\b",
    ),
    ("assigns a role", r"\bfrom now on,? you (?:are|will|must|shall|should|may)\b"),
    (
        "assigns a role",
        r"\b(?:act|behave|respond) as (?:if you (?:are|were|have)|an? (?:unrestricted|uncensored|jailbroken|evil|root))\b",
    ),
    ("assigns a role", r"\bpretend (?:that )?(?:to be|you(?: are|'re)) "),
    ("assigns a role", r"\b(?:do anything now|dan mode|developer mode (?:is )?(?:enabled|on)|jailbreak mode)\b"),
    (
        "asks for the system prompt",
        r"\b(?:reveal|print|repeat|output|leak|dump|show me|tell me|display|disclose|copy|recite)\b.{0,30}"
        r"\b(?:(?:your|the) )?(?:system prompt|hidden prompt|initial prompt|system message|initial instructions)\b",
    ),
    ("asks for the system prompt", r"\byour (?:system prompt|initial instructions|hidden instructions)\b"),
    (
        "asks for secrecy",
        rf"\b(?:do not|don't|never|must not) (?:tell|inform|alert|let) (?:the |your |any )?{_PERSON}"
        r"(?: (?:about|of|that|know|see|notice|this|anything)\b|[.!]| ?$)",
    ),
    (
        "asks for secrecy",
        r"\b(?:do not|don't|never) (?:mention|reveal|disclose|report|admit|show) (?:this|these|it|any of this)"
        rf"(?: \w{{1,20}}){{0,2}} to (?:the |your )?{_PERSON}\b",
    ),
    (
        "asks for secrecy",
        r"\bwithout (?:telling|informing|asking|notifying|alerting|the knowledge of) (?:the |your |any )?(?:user|human|operator|owner)\b",
    ),
    (
        "asks for secrecy",
        rf"\b(?:hide|conceal|keep) (?:this|these|it|that)(?: \w{{1,20}}){{0,2}} from (?:the |your )?{_PERSON}\b",
    ),
    (
        "waives consent",
        r"\b(?:do not|don't|never|no need to) (?:ask|wait|prompt|stop)(?: \w{1,20}){0,3} for (?:\w{1,20} ){0,2}"
        r"(?:permission|confirmation|approval|consent)\b",
    ),
    (
        "waives consent",
        r"\byou (?:now )?have (?:been granted )?(?:full|unrestricted|unlimited|root|admin) (?:access|permissions?|privileges|rights)\b",
    ),
    (
        "waives consent",
        r"\b(?:approve|accept|allow|grant) (?:all|any|every) (?:future )?(?:tool (?:calls?|uses?)|permission(?:s| requests?| prompts?))",
    ),
    (
        "addresses the reader",
        rf"\b(?:attention|message|note|instructions?|notice)(?: to| for|,)? (?:all |any |every |the )?{_READER}(?: reading this)?[:!,]",
    ),
    (
        "addresses the reader",
        rf"\bif you(?: are|'re) (?:an? )?(?:{_READER})\b.{{0,20}}(?:reading|processing|,|then|you)",
    ),
    ("addresses the reader", rf"\b(?:dear|hey|hello) {_READER}\b"),
    ("addresses the reader", rf"\bany {_READER} (?:reading|that reads|who reads|processing) this\b"),
    (
        "asks to send secrets",
        r"\b(?:send|post|upload|exfiltrate|forward|e-?mail|transmit|leak|pipe|curl)\b.{0,60}"
        r"\b(?:secrets?|credentials?|api keys?|tokens?|passwords?|environment variables|\.env|private keys?|ssh keys?|\.ssh|id_rsa)\b"
        r".{0,60}(?:https?://|\bto [\w.+-]{1,64}@)",
    ),
    (
        "asks to be copied",
        r"\b(?:copy|repeat|add|append|write|insert|include|paste) this (?:instruction|message|prompt|text|entry|note|line)s?"
        r"(?: \w{1,20}){0,2} (?:in|into|to|in every|at the) (?:every|all|each|any|your)\b",
    ),
    (
        "asks to run hidden code",
        r"\b(?:decode|deobfuscate|decrypt)\b.{0,60}\b(?:base64|rot13|hex|payload)\b.{0,30}\band (?:execute|run|eval|follow|obey)\b",
    ),
)

# Markup that only a conversation between a program and a model contains; matched against the text as it stands.
_MARKUP = (
    (
        "tool-call markup",
        r"</?(?:antml:|[a-z]{1,12}:)?(?:function_calls?|tool_calls?|tool_use|tool_results?|function_results?)\b",
    ),
    ("tool-call markup", r"<(?:antml:|[a-z]{1,12}:)?(?:invoke|parameter) name="),
    ("tool-call markup", r"\"type\" ?: ?\"tool_(?:use|result)\""),
    ("conversation markup", r"</?system(?:-reminder|_prompt|-prompt)?>"),
    ("conversation markup", r"<\|(?:im_start|im_end|system|assistant|user|endoftext|eot_id|start_header_id)\|>"),
    ("conversation markup", r"\[/?inst\]|<</?sys>>"),
    ("conversation markup", r"(?:^|\n)(?:human|assistant): .{0,200}\n{1,3}(?:human|assistant): "),
)

_PHRASE_RULES = tuple((kind, re.compile(pattern)) for kind, pattern in _PHRASES)
_MARKUP_RULES = tuple((kind, re.compile(pattern)) for kind, pattern in _MARKUP)
_EMPHASIS = re.compile(r"[*_`>\"\u201c\u201d]+")


def speaks_to_agents(text: str) -> str | None:
    """What makes an entry read like an instruction to agents, in a few words for the person; None if nothing does."""
    if hides_text(text):
        return HIDDEN_TEXT
    plain = unfold(text)[0].lower().replace("\u2019", "'")
    for kind, pattern in _MARKUP_RULES:
        if pattern.search(plain):
            return kind
    words = " ".join(_EMPHASIS.sub(" ", plain).split())
    for kind, pattern in _PHRASE_RULES:
        if pattern.search(words):
            return kind
    return None
