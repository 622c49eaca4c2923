"""What the names of columns say, in the languages of the docs: words for texts, labels, ids and
what holds no labels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Literal

Meaning = Literal["labels", "classes", "suggested", "other"]
"""Labels of documents; classes that a few coarse labels are; labels that a program proposed; no
labels.
"""

_TITLES = (
    "ti article_title document_title title titel titre titolo titulo otsikko rubrik heading "
    "headline"
)
_TEXTS = """
ab text abstract body content description summary abstracttext fulltext full_text note notes
document abstract_note abstractnote sentence
zusammenfassung beschreibung inhalt volltext kurzfassung tiivistelma kuvaus teksti resume contenu
texte resumen texto descripcion riassunto testo sammanfattning samenvatting tekst resumo
"""
_IDS = "doc_id document_id docid id identifier uri ppn pmid doi record_id key"
_LANGUAGES = """
ar bg cs da de el en es et fa fi fr he hi hr hu id is it ja ko lt lv nb nl nn no pl pt ro ru sk sl
sr sv th tr uk vi zh eng ger deu fre fra spa ita fin swe dut nld por rus chi zho jpn lat pol dan nor
cze ces english german deutsch french francais spanish espanol italian italiano finnish suomi
swedish svenska dutch portuguese russian chinese japanese latin polish
"""
_STATES = """
draft published publish pending active inactive open closed done new completed complete submitted
discarded approved rejected accepted accept reject ignore true false yes no ja nein oui non si kylla
ei public private archived deleted final unknown todo ok train test dev valid validation
entwurf veroffentlicht offen geschlossen brouillon publie borrador publicado luonnos julkaistu
"""
_LABELS = """
label labels tag tags keyword keywords subject subjects topic topics descriptor descriptors headings
term terms mesh code codes icd concept concepts theme themes
schlagwort schlagworter schlagwoerter schlagworte stichwort stichworter stichworte deskriptor
deskriptoren thema themen asiasana asiasanat avainsana avainsanat aihe aiheet
sujet sujets descripteur descripteurs etiquette etiquettes matiere matieres motscles
descriptores tema temas materia materias etiqueta etiquetas palabrasclave
soggetto soggetti descrittore descrittori etichetta etichette temi
amnesord nyckelord amne amnen trefwoord trefwoorden onderwerp onderwerpen assunto assuntos descritor
descritores
"""
_CLASSES = """
category categories class classes genre genres classification classifications group groups section
sections area areas kategorie kategorien klasse klassen sachgruppe sachgruppen gattung notation
notationen luokka luokat kategoria kategoriat categorie categorien rubrique rubriques categoria
categorias clase clases classe classi classes kategori kategorier discipline disciplines field
fields
"""
_SUGGESTED = (
    "suggestion suggestions suggested automatic auto predicted prediction predictions plus machine"
)
_OTHER = """
author authors editor editors creator creators contributor contributors translator translators
writer composer publisher publishers publication journal source sources imprint series conference
venue affiliation affiliations name names person people user users annotator annotators reviewer
agent owner email mail phone address institution language languages lang locale country city place
location region isbn issn doi url uri uris link links href id ids uid uuid key keys identifier
number numbers no nr ppn pmid hash year date dates time datetime timestamp created updated modified
month day version edition volume issue page pages pagination extent count counts size length words
score scores probability confidence weight rating ratings price rank votes status state states type
types format
formats license licence rights access file filename path extra answer decision comment comments
split fold part price currency autor autoren verfasser herausgeber urheber verlag sprache sprachen
jahr datum ort quelle zeitschrift seiten band anzahl typ tekija tekijat kirjoittaja toimittaja
julkaisija kustantaja kieli vuosi paivamaara paikka lahde tila tyyppi auteur auteurs editeur
editeurs langue
langues annee lieu etat statut autores editorial idioma idiomas ano fecha lugar estado tipo revista
autore autori curatore editore lingua lingue anno data luogo stato
forfattare redaktor forlag sprak ar auteursnaam uitgever taal talen jaar plaats
editora lingua idioma fecha
"""
_WORDS: dict[str, Meaning] = {
    **dict.fromkeys(_OTHER.split(), "other"),
    **dict.fromkeys(_SUGGESTED.split(), "suggested"),
    **dict.fromkeys(_CLASSES.split(), "classes"),
    **dict.fromkeys(_LABELS.split(), "labels"),
}
_PHRASES = re.compile(
    r"\b(?:mots? cles?|palabras? claves?|parol[ae] chiav[ei]|palavras? chaves?|key words?|subject "
    r"uris?)\b"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

TITLE_NAMES, TEXT_NAMES = frozenset(_TITLES.split()), frozenset(_TEXTS.split())
ID_NAMES = tuple(_IDS.split())
"""The likeliest first."""
LANGUAGE_NAMES = frozenset(_LANGUAGES.split())
STATE_WORDS = frozenset(_STATES.split())
"""Values that say how far a record is, or yes and no."""


def fold_name(name: str) -> str:
    """A name in small letters, without accents and blanks around it."""
    letters = unicodedata.normalize("NFKD", name.strip().casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def split_name(name: str) -> str:
    """A name with blanks between its words: `WorkerId` is `Worker Id`."""
    return _CAMEL.sub(" ", name)


def named(columns: Collection[str], known: Collection[str]) -> list[str]:
    """Those columns that have one of these names."""
    return [name for name in columns if re.sub(r"[\s_-]+", "_", fold_name(name)) in known]


def read_meaning(name: str) -> Meaning | None:
    """What a column's name says of labels: by its last word, else by any; None if it says nothing.

    `author_keywords` are labels, `keyword_count` and `subject_id` are none.
    """
    folded = fold_name(split_name(name))
    words = re.findall(r"[^\W\d_]+", folded)
    if _PHRASES.search(" ".join(words)):
        return "labels"
    meanings = [_WORDS[word] for word in words if word in _WORDS]
    if not meanings:
        return None
    last = _WORDS.get(words[-1])
    if last == "other" or "suggested" in meanings:
        return last if last == "other" else "suggested"
    return _first(meanings, ("labels", "classes", "other"))


def _first(meanings: Iterable[Meaning], order: tuple[Meaning, ...]) -> Meaning:
    return min(meanings, key=order.index)
