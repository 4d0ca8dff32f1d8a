"""English words without their endings, so that a question and its answer meet in one term."""

from __future__ import annotations

from functools import lru_cache

_IRREGULAR = """
be am is are was were been being|become became|begin began begun|bend bent|bite bit bitten
blow blew blown|break broke broken|bring brought|build built|burn burnt|buy bought|catch caught
choose chose chosen|come came|deal dealt|dig dug|do did done does|draw drew drawn|dream dreamt
drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt
fight fought|find found|fly flew flown|forget forgot forgotten|forgive forgave forgiven
freeze froze frozen|get got gotten|give gave given|go went gone goes|grow grew grown|hang hung
have had has|hear heard|hide hid hidden|hold held|keep kept|know knew known|lead led|learn learnt
leave left|lend lent|light lit|lose lost|make made|mean meant|meet met|pay paid|ride rode ridden
ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent
shake shook shaken|shoot shot|show shown|sing sang sung|sink sank sunk|sit sat|sleep slept
speak spoke spoken|spend spent|stand stood|steal stole stolen|stick stuck|strike struck
swear swore sworn|swim swam swum|take took taken|teach taught|tear tore torn|tell told
think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn|win won
write wrote written|child children|foot feet|knife knives|leaf leaves|life lives|man men
mouse mice|person people|tooth teeth|wife wives|woman women|index indices|matrix matrices
"""
_BASE = {
    form: base
    for line in _IRREGULAR.split("\n")
    for base, *forms in (group.split() for group in line.split("|") if group)
    for form in forms
}
REMEMBERED = 10_000
"""Words of which the stem is remembered."""

_VOWELS = frozenset("aeiouy")


@lru_cache(REMEMBERED)
def stem(word: str) -> str:
    """An English word without its ending, in small letters; any other as it is.

    The endings are those that questions and answers differ by most: plural and third person,
    `-ing`, `-ed`, `-tion` and `-sion`, `-ly`, a last `e` or `y`, and the forms of irregular verbs.

    Example:
        >>> [stem(word) for word in ("hike", "hiking", "hiked", "went", "adoption", "class", "bus")]
        ['hik', 'hik', 'hik', 'go', 'adopt', 'class', 'bus']
    """
    word = _BASE.get(word, word)
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith(("ies", "ied")) and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        bare = word[: -len(ending)]
        if word.endswith(ending) and len(word) >= 5 and not _VOWELS.isdisjoint(bare):
            doubled = len(bare) > 3 and bare[-1] == bare[-2] and bare[-1] not in "lsz"
            word = bare[:-1] if doubled else bare
            break
    if len(word) > 6 and word.endswith(("tion", "sion")):
        word = word[:-3]
    elif len(word) > 6 and word.endswith("ly"):
        word = word[:-2]
    if len(word) > 3 and word.endswith("e"):
        return word[:-1]
    return word[:-1] + "i" if len(word) > 4 and word.endswith("y") else word
