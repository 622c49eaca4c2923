"""The words that codes are made of: 20 organs × 15 conditions × 10 qualifiers, each with synonyms.

Invented for this corpus. Many combinations mean nothing to a physician; what counts is that they share words, as real codes do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Organ:
    """`letter` of its chapter; `root` starts compounds (nephr-itis), `eponym` surnames and `drug` the names of drugs."""

    letter: str
    nouns: tuple[str, ...]
    adjectives: tuple[str, ...]
    root: str
    eponym: str
    drug: str


@dataclass(frozen=True)
class Condition:
    """`suffix` ends compounds (nephr-itis), or is empty; `eponym` ends surnames, `drug` the names of drugs."""

    nouns: tuple[str, ...]
    suffix: str
    eponym: str
    drug: str


@dataclass(frozen=True)
class Qualifier:
    """Words `before` a condition ("acute") or `after` it ("of sudden onset"); none for the unspecified code."""

    title: str
    before: tuple[str, ...]
    after: tuple[str, ...]


ORGANS = (
    Organ("A", ("heart", "myocardium"), ("cardiac", "heart"), "cardi", "Har", "cora"),
    Organ("B", ("lung", "lungs"), ("pulmonary", "lung"), "pneumon", "Kes", "pulma"),
    Organ("C", ("kidney", "kidneys"), ("renal", "kidney"), "nephr", "Dal", "nefro"),
    Organ("D", ("liver",), ("hepatic", "liver"), "hepat", "Bren", "heva"),
    Organ("E", ("stomach",), ("gastric", "stomach"), "gastr", "Ost", "gasti"),
    Organ("F", ("small bowel", "small intestine"), ("enteric", "small bowel"), "enter", "Lin", "ente"),
    Organ("G", ("colon", "large bowel"), ("colonic", "large bowel"), "col", "Mar", "colo"),
    Organ("H", ("gallbladder", "biliary tract"), ("biliary", "gallbladder"), "cholecyst", "Tor", "bila"),
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
    Qualifier("recurrent", ("recurrent", "relapsing"), ("for the third time", "with frequent relapses")),
    Qualifier("congenital", ("congenital", "inborn"), ("present since birth",)),
    Qualifier("postoperative", ("postoperative", "post-surgical"), ("after surgery", "following the operation")),
    Qualifier("drug-induced", ("drug-induced", "toxic"), ("as an adverse drug reaction", "due to medication")),
    Qualifier("left", ("left-sided", "left"), ("on the left",)),
    Qualifier("right", ("right-sided", "right"), ("on the right",)),
    Qualifier("in pregnancy", ("gestational", "pregnancy-related"), ("during pregnancy",)),
)
