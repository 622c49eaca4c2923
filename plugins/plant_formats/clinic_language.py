"""The codes of the synthetic clinic and how they are put into words.

Codes combine 20 organs, 15 conditions and 10 qualifiers, each with synonyms, all invented for this
corpus. Many combinations mean nothing to a physician; what counts is that they share words, as real
codes do.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random

MISSPELT = 0.04  # of the longer words in mentions
_NAMED = ("disease", "syndrome")


@dataclass(frozen=True)
class Organ:
    """`letter` of its chapter; `root` starts compounds (nephr-itis), `eponym` surnames and
    `drug` the names of drugs.
    """

    letter: str
    nouns: tuple[str, ...]
    adjectives: tuple[str, ...]
    root: str
    eponym: str
    drug: str


@dataclass(frozen=True)
class Condition:
    """`suffix` ends compounds (nephr-itis), or is empty; `eponym` ends surnames, `drug` the
    names of drugs.
    """

    nouns: tuple[str, ...]
    suffix: str
    eponym: str
    drug: str


@dataclass(frozen=True)
class Qualifier:
    """Words `before` a condition ("acute") or `after` it ("of sudden onset"); none for the
    unspecified code.
    """

    title: str
    before: tuple[str, ...]
    after: tuple[str, ...]


ORGANS = (
    Organ("A", ("heart", "myocardium"), ("cardiac", "heart"), "cardi", "Har", "cora"),
    Organ("B", ("lung", "lungs"), ("pulmonary", "lung"), "pneumon", "Kes", "pulma"),
    Organ("C", ("kidney", "kidneys"), ("renal", "kidney"), "nephr", "Dal", "nefro"),
    Organ("D", ("liver",), ("hepatic", "liver"), "hepat", "Bren", "heva"),
    Organ("E", ("stomach",), ("gastric", "stomach"), "gastr", "Ost", "gasti"),
    Organ(
        "F", ("small bowel", "small intestine"), ("enteric", "small bowel"), "enter", "Lin", "ente"
    ),
    Organ("G", ("colon", "large bowel"), ("colonic", "large bowel"), "col", "Mar", "colo"),
    Organ(
        "H",
        ("gallbladder", "biliary tract"),
        ("biliary", "gallbladder"),
        "cholecyst",
        "Tor",
        "bila",
    ),
    Organ("J", ("pancreas",), ("pancreatic",), "pancreat", "Wes", "panca"),
    Organ("K", ("bladder", "urinary bladder"), ("vesical", "bladder"), "cyst", "Ful", "vesi"),
    Organ("L", ("thyroid", "thyroid gland"), ("thyroid",), "thyroid", "Gar", "thyra"),
    Organ("M", ("brain", "cerebrum"), ("cerebral", "brain"), "encephal", "Sten", "cere"),
    Organ("N", ("nerve", "peripheral nerve"), ("neural", "nerve"), "neur", "Pel", "nevro"),
    Organ("P", ("skin",), ("cutaneous", "skin"), "dermat", "Rud", "derma"),
    Organ("Q", ("joint", "joints"), ("articular", "joint"), "arthr", "Hol", "arta"),
    Organ("R", ("bone", "bones"), ("osseous", "bone"), "oste", "Ven", "osta"),
    Organ("S", ("muscle", "muscles"), ("muscular", "muscle"), "my", "Cal", "myo"),
    Organ("T", ("eye", "eyes"), ("ocular", "eye"), "ophthalm", "Ald", "opta"),
    Organ("U", ("ear", "ears"), ("aural", "ear"), "ot", "Nor", "oto"),
    Organ("V", ("vein", "veins"), ("venous", "vein"), "phleb", "Zim", "vena"),
)

CONDITIONS = (
    Condition(("inflammation", "inflammatory change"), "itis", "wick", "prox"),
    Condition(("infection", "bacterial infection"), "", "ley", "cillin"),
    Condition(("stenosis", "narrowing", "stricture"), "ostenosis", "berg", "dilan"),
    Condition(("haemorrhage", "bleeding", "hemorrhage"), "orrhagia", "mann", "stat"),
    Condition(("neoplasm", "tumour", "mass", "tumor"), "oma", "sen", "platin"),
    Condition(("failure", "insufficiency", "decompensation"), "", "ford", "pril"),
    Condition(("calculus", "stones", "stone disease"), "olithiasis", "ström", "lyte"),
    Condition(("obstruction", "blockage", "occlusion"), "", "ski", "motil"),
    Condition(("perforation", "rupture", "full-thickness defect"), "orrhexis", "ton", "seal"),
    Condition(("fibrosis", "scarring"), "osclerosis", "dale", "nib"),
    Condition(("ischaemia", "hypoperfusion", "ischemia"), "", "vik", "grel"),
    Condition(("cyst", "cystic lesion"), "", "hart", "tide"),
    Condition(("abscess", "purulent collection"), "", "stein", "floxacin"),
    Condition(("injury", "trauma", "contusion"), "", "worth", "fen"),
    Condition(("enlargement", "hypertrophy"), "omegaly", "by", "sartan"),
)

QUALIFIERS = (
    Qualifier("unspecified", (), ()),
    Qualifier("acute", ("acute", "new", "sudden"), ("of sudden onset",)),
    Qualifier("chronic", ("chronic", "longstanding"), ("known for years", "over many years")),
    Qualifier(
        "recurrent", ("recurrent", "relapsing"), ("for the third time", "with frequent relapses")
    ),
    Qualifier("congenital", ("congenital", "inborn"), ("present since birth",)),
    Qualifier(
        "postoperative",
        ("postoperative", "post-surgical"),
        ("after surgery", "following the operation"),
    ),
    Qualifier(
        "drug-induced",
        ("drug-induced", "toxic"),
        ("as an adverse drug reaction", "due to medication"),
    ),
    Qualifier("left", ("left-sided", "left"), ("on the left",)),
    Qualifier("right", ("right-sided", "right"), ("on the right",)),
    Qualifier("in pregnancy", ("gestational", "pregnancy-related"), ("during pregnancy",)),
)


@dataclass(frozen=True)
class NoteSection:
    """Part of a note: `kind` names the sentences that may stand in it, `headings` are ways to
    head it.
    """

    kind: str
    headings: tuple[str, ...]


COMPLAINT = NoteSection("complaint", ("Chief complaint", "Presenting complaint", "CC"))
HISTORY_SECTION = NoteSection("history", ("History", "Past medical history", "PMH", "Background"))
FAMILY = NoteSection("family", ("Family history", "FH"))
FINDINGS = NoteSection("findings", ("Findings", "Examination and imaging", "O/E", "Results"))
COURSE = NoteSection("course", ("Hospital course", "Progress", "Course on the ward"))
MEDICATION = NoteSection("medication", ("Medication", "Drugs on discharge", "Rx"))
PLAN = NoteSection("plan", ("Plan", "Recommendations", "Follow-up"))

TEMPLATES = {
    "DISCHARGE SUMMARY": (COMPLAINT, HISTORY_SECTION, FAMILY, FINDINGS, COURSE, MEDICATION, PLAN),
    "CLINIC LETTER": (HISTORY_SECTION, FINDINGS, MEDICATION, PLAN),
    "EMERGENCY NOTE": (COMPLAINT, FINDINGS, HISTORY_SECTION, PLAN),
    "CONSULTATION": (COMPLAINT, HISTORY_SECTION, FAMILY, FINDINGS, PLAN),
    "TRANSFER NOTE": (HISTORY_SECTION, COURSE, FINDINGS, MEDICATION),
}

AFFIRMED = {
    "complaint": (
        "Admitted with {m}.",
        "Referred for {m}.",
        "Came in because of {m}.",
        "{m} was the reason for coming.",
    ),
    "history": (
        "Known {m}.",
        "The patient has {m}.",
        "{m} was diagnosed {n} years ago.",
        "Treated elsewhere for {m}.",
        "Hx of {m}.",
    ),
    "findings": (
        "Imaging confirms {m}.",
        "Findings consistent with {m}.",
        "{m} is seen.",
        "CT shows {m} measuring {n} mm.",
        "Impression: {m}.",
    ),
    "course": (
        "The stay was complicated by {m}.",
        "{m} was managed conservatively.",
        "Developed {m} on day {n}.",
        "We treated {m}.",
    ),
    "plan": (
        "Continue treatment of {m}.",
        "Review of {m} in {n} weeks.",
        "{m}: see the specialist.",
        "Monitor {m}.",
    ),
}
NEGATED = (
    "No evidence of {m}.",
    "No sign of {m}.",
    "{m} was ruled out.",
    "Denies {m}.",
    "Negative for {m}.",
    "Without {m}.",
    "There was concern for {m}, which was not confirmed.",
)
RELATIVES = (
    "Mother had {m}.",
    "Father died of {m} at {n}.",
    "A sister is treated for {m}.",
    "{m} in the grandfather.",
    "Two cousins with {m}.",
)
FILLER = {
    "complaint": (
        "Feeling unwell for {n} days.",
        "Brought in by ambulance.",
        "Symptoms began {n} hours before arrival.",
    ),
    "history": (
        "Lives with a partner.",
        "Stopped smoking {n} years ago.",
        "No known allergies.",
        "Walks {n} km daily.",
    ),
    "family": (
        "Parents died of old age.",
        "{n} siblings, all well.",
        "Family history otherwise not contributory.",
    ),
    "findings": (
        "BP 1{n}/8{n}, pulse {n}, afebrile.",
        "Haemoglobin {n} g/l.",
        "Alert and oriented.",
        "CRP {n} mg/l.",
        "Abdomen soft.",
        "Breath sounds clear.",
        "Weight {n} kg.",
    ),
    "course": (
        "Mobilised on day {n}.",
        "Diet was advanced as tolerated.",
        "Pain was well controlled.",
        "The night was uneventful.",
    ),
    "medication": (
        "{n} mg once daily before breakfast.",
        "Doses unchanged.",
        "Stop after {n} days.",
        "Take with food.",
    ),
    "plan": (
        "Return if symptoms worsen.",
        "Blood tests in {n} weeks.",
        "Discussed with the patient, who agrees.",
    ),
}
PRESCRIBED = (
    "{d} {n} mg daily.",
    "{d} {n} mg bd.",
    "Started on {d}.",
    "{d} was increased to {n} mg.",
)


@dataclass(frozen=True)
class Code:
    """A label, such as `C12.3`: chapter C (kidney), condition 12, qualifier 3. The family C12
    is its parent.
    """

    id: str
    organ: Organ
    condition: Condition
    qualifier: Qualifier

    @property
    def family(self) -> str:
        """The id without its qualifier."""
        return self.id.partition(".")[0]

    @property
    def title(self) -> str:
        """What a list of codes would call it."""
        return (
            f"{self.condition.nouns[0].capitalize()} of {self.organ.nouns[0]}, "
            f"{self.qualifier.title}"
        )


def choose_codes(count: int, rng: Random) -> list[Code]:
    """Codes in the order of their frequency, most frequent first.

    They come in families of three to eight that differ by qualifier only, so that related codes
    share words; when the families run out (beyond about 1,600 codes) the missing members are filled
    in.
    """
    families = list(product(ORGANS, enumerate(CONDITIONS, start=1)))
    rng.shuffle(families)
    chosen: list[Code] = []
    left_out: list[Code] = []
    for organ, (number, condition) in families:
        members = [
            Code(f"{organ.letter}{number:02d}.{digit}", organ, condition, qualifier)
            for digit, qualifier in enumerate(QUALIFIERS)
        ]
        rng.shuffle(members)
        size = rng.randint(3, 8)
        chosen += members[:size]
        left_out += members[size:]
    codes = (chosen + left_out)[:count]
    rng.shuffle(codes)
    return codes


def weigh(count: int) -> list[float]:
    """How often the code of each rank is used, relative to others: a power law with a flattened
    head.
    """
    return [(rank + 6) ** -1.2 for rank in range(count)]


def phrase(code: Code, rng: Random) -> str:
    """A mention of a code in full, in one of its many wordings, perhaps misspelt."""
    core = _word_condition(code, rng)
    before, after = code.qualifier.before, code.qualifier.after
    if not before:
        wording = core
    elif rng.random() < 0.7:
        wording = f"{rng.choice(before)} {core}"
    else:
        wording = f"{core} {rng.choice(after)}"
    return " ".join(misspell(word, rng) for word in wording.split(" "))


def abbreviate(code: Code) -> str:
    """Initials, such as ARF for acute renal failure; other codes may share them, as in life."""
    words = [*code.qualifier.before[:1], code.organ.adjectives[0], code.condition.nouns[0]]
    return "".join(word[0] for word in words).upper()


def name_drug(code: Code) -> str:
    """The drug for the code's family."""
    return code.organ.drug + code.condition.drug


def misspell(word: str, rng: Random) -> str:
    """The word, or now and then the word with a letter left out, doubled, or exchanged with the
    next.
    """
    if len(word) < 6 or rng.random() >= MISSPELT:
        return word
    at = rng.randrange(1, len(word) - 2)
    left, letter, following, right = word[:at], word[at], word[at + 1], word[at + 2 :]
    return left + rng.choice((following, letter + letter + following, following + letter)) + right


def _word_condition(code: Code, rng: Random) -> str:
    organ, condition = code.organ, code.condition
    ways = [
        f"{rng.choice(organ.adjectives)} {rng.choice(condition.nouns)}",
        f"{rng.choice(condition.nouns)} of the {rng.choice(organ.nouns)}",
    ]
    if condition.suffix:
        ways.append(organ.root + condition.suffix)
    if rng.random() < 0.2:
        return f"{organ.eponym}{condition.eponym}'s {rng.choice(_NAMED)}"
    return rng.choice(ways)
