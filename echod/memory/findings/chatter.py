"""What an agent says around its findings and not in them: "Here are my findings:", "Let me know if ...".

Dropping a learning is worse than keeping a greeting: a paragraph is chatter only if every sentence of it, from its
first word to its last, is one of a few known phrases made of filler words, and nothing in it looks like a fact.
"""

from __future__ import annotations

import re
from functools import cache

_FILLER = (
    r"(?:i|i've|we|you|my|your|the|our|a|an|some|all|any|this|that|these|those|it|its|and|or|with|from|of|for|to|in|on|"
    r"into|at|as|by|about|above|below|key|main|new|further|other|more|else|me|now|here|requested|required|recommended|"
    r"asked|proper|correct|given|found|made|have|had|were|was|are|is|be|been|will|during|while|after|across|today|"
    r"session|sessions|task|tasks|code|codebase|repository|repo|project|work|workflow|review|reviews|reviewing|audit|"
    r"analysis|investigation|changes|plan|format|file|files|echo|echoes|memory|team|run|agent|agents|reviewer|worker|"
    r"planner|auditor|finding|findings|learning|learnings|lessons|learned|learnt|entries|results|observations|notes|"
    r"summary|pull|request|implementation|next|future|discovered|identified|collected|gathered|worth|remembering|"
    r"keeping|saving|storing|reporting|noticed|noted|questions|anything|something|need|needed|want|like|would|if|"
    r"there|help|branch|commit|commits|diff|patterns|insights|i'd|persist|share|record|report|save|store|consolidate|consolidated|orchestrator|changed|changes|details|adjustments|clarification|so|far|again)"
)
_FILL = rf"(?:[ ,-]+{_FILLER}){{0,16}}"
_THINGS = r"(?:findings?|learnings?|lessons|entries|echoes|results|observations|notes|memories)"

_INTERJECTION = re.compile(
    r"(?:sure(?: thing)?|certainly|of course|okay|ok|great|absolutely|all done|done|perfect|understood|got it)\b[ ,!-]*"
)
_SENTENCES = (
    rf"(?:here(?:'s| is| are)|these are|below(?: is| are)|see below for){_FILL} {_THINGS}{_FILL}",
    rf"here(?:'s| is) what (?:i|we) (?:have )?(?:found|learned|learnt|noticed|discovered){_FILL}",
    rf"(?:my|the|our) {_THINGS}(?: (?:are|follow|from){_FILL})?",
    rf"the following (?:are |is )?{_THINGS}{_FILL}",
    rf"{_THINGS} (?:below|follow|from{_FILL})",
    (
        rf"i(?:'ve| have|'ll| will| am|'m)?(?: now)? (?:completed?|finished|done|reviewed|written|write|wrote|"
        rf"recorded|recording|documented|documenting|compiled|summari[sz]ed|persisted|saved){_FILL}"
    ),
    rf"(?:please )?let me know{_FILL}",
    rf"(?:please )?(?:feel free|don't hesitate) to (?:ask|reach out|contact me|let me know){_FILL}",
    rf"(?:i |we )?hope (?:this|that|these|it) helps?{_FILL}",
    rf"(?:i am |i'm |i'd be )?happy to (?:help|elaborate|clarify|expand|answer|discuss|continue|adjust){_FILL}",
    rf"(?:that's|that is|this is|those are|these are) (?:all|everything|it){_FILL}",
    rf"(?:no|end of) (?:more |further |additional |new )?{_THINGS}(?: yet| to report| this time| found)?",
    r"no echoes yet",
    r"(?:many )?(?:thanks|thank you)(?: very much| so much)?",
    rf"would you like me to (?:continue|elaborate|expand|save|store|write){_FILL}",
    rf"(?:these|they) will be (?:stored|saved|persisted|echoed|recorded){_FILL}",
)  # fmt: skip

_LONG = 400  # characters; nobody is polite for longer
# Words of a claim; a sentence with one of them may be a learning.
_CLAIMS = re.compile(
    r"\b(?:must|should|always|never|not|no|avoid|use|uses|because|needs|requires|since|when|found|that|which|is|are|was|"
    r"were|has|causes?|fails?|and|but|so)\b"
)
_COMPLETED = re.compile(r"i(?:'ve| have)(?: now)? (?:completed|finished) (?:the|my|a) [a-z' -]{1,60}")
_FACTS = re.compile(r"[\d`/\\<>=(){}\[\]$@#|]|\w_\w|\w\.\w")


def is_chatter(paragraph: str) -> bool:
    """Whether a paragraph says nothing but that findings are coming, were given, or that help is at hand."""
    text = " ".join(paragraph.split()).casefold().replace("\u2019", "'").strip("*_ ")
    if not text or len(text) > _LONG or _FACTS.search(text):
        return False
    sentences = [part for part in re.split(r"[.!?:;\u2026]+(?:\s+|$)", text) if part.strip(" -\u2013\u2014*_")]
    return bool(sentences) and all(_is_phrase(sentence) for sentence in sentences)


@cache
def _sentences() -> tuple[re.Pattern[str], ...]:
    """Compiled when the first paragraph asks, since that takes as long as loading a dozen modules."""
    return tuple(map(re.compile, _SENTENCES))


def _is_phrase(sentence: str) -> bool:
    bare = sentence.strip(" -\u2013\u2014*_,")
    greeting = _INTERJECTION.match(bare)
    rest = bare[greeting.end() :] if greeting else bare
    if not rest or any(pattern.fullmatch(rest) for pattern in _sentences()):
        return True
    return _COMPLETED.fullmatch(rest) is not None and _CLAIMS.search(rest) is None
