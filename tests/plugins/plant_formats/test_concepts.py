"""Vocabularies of other kinds: RDF that is not plain SKOS, JSKOS, classifications in XML; and
their languages.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from plant_formats.concepts import is_spoken

from plant_cli.api import DataError, Purpose
from plant_cli.data.vocabularies import read_vocabulary

PREFIXES = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix x: <http://x/> .
@prefix mads: <http://www.loc.gov/mads/rdf/v1#> . @prefix mesh: <http://id.nlm.nih.gov/mesh/vocab#> .
@prefix obo: <http://www.geneontology.org/formats/oboInOwl#> .
"""


def read(
    folder: Path, content: str | bytes, purpose: Purpose | None = None
) -> tuple[pl.DataFrame, str]:
    (folder / "v").write_bytes(content if isinstance(content, bytes) else content.encode())
    table, remarks = read_vocabulary(folder / "v", purpose)
    return table, "\n".join(remarks)


@pytest.mark.parametrize(
    ("turtle", "row"),
    [
        (
            "x:1 a skos:Concept ; xl:prefLabel x:l1 ; xl:altLabel [ xl:literalForm "
            '"Petroleum"@en ] . x:l1 a xl:Label ;'
            ' xl:literalForm "Oil"@en .',
            ("http://x/1", "Oil", ["Petroleum"], []),
        ),
        (
            'x:1 a skos:Concept ; rdfs:label "Oil"@en ; skos:broader x:0 . x:s a '
            'skos:ConceptScheme ; rdfs:label "All"@en .',
            ("http://x/1", "Oil", [], ["http://x/0"]),
        ),
        (
            'x:1 a owl:Class ; rdfs:label "Oil" ; rdfs:subClassOf x:0 ; obo:hasExactSynonym '
            '"Petroleum" . x:p a owl:ObjectProperty ;'
            ' rdfs:label "has" .',
            ("http://x/1", "Oil", ["Petroleum"], ["http://x/0"]),
        ),
        (
            'x:1 mads:authoritativeLabel "Oil"@en ; mads:hasVariant [ mads:variantLabel '
            '"Petroleum"@en ] ; mads:hasBroaderAuthority x:0 .',
            ("http://x/1", "Oil", ["Petroleum"], ["http://x/0"]),
        ),
        (
            'x:1 a mesh:TopicalDescriptor ; rdfs:label "Oil"@en . x:t a mesh:Term ; rdfs:label '
            '"Oil"@en .',
            ("http://x/1", "Oil", [], []),
        ),
        (
            'x:1 skos:prefLabel "Oil"@en ; rdfs:label "oil (thing)"@en . x:a rdfs:label "Ada" .',
            ("http://x/1", "Oil", [], []),
        ),
    ],
)
def test_concepts_are_named_in_many_ways(
    turtle: str, row: tuple[object, ...], tmp_path: Path
) -> None:
    table, _ = read(tmp_path, PREFIXES + turtle)
    assert table.select("label", "title", "alternatives", "parents").rows() == [row]


def test_a_label_of_the_documents_that_is_no_concept_any_more_is_replaced_by_what_names_it(
    tmp_path: Path,
) -> None:
    turtle = """@prefix dct: <http://purl.org/dc/terms/> .
    x:1 a skos:Concept ; skos:prefLabel "Oil"@en ; dct:replaces x:0, x:unused ; skos:exactMatch x:9 .
    x:2 a skos:Concept ; skos:prefLabel "Coal"@en ; dct:replaces x:0 ; skos:exactMatch x:1 ."""
    used = Purpose(used=pl.Series(["http://x/0", "http://x/1", "http://x/9"]))
    for purpose, replaced in (
        (used, [("http://x/0", ["http://x/1", "http://x/2"]), ("http://x/9", ["http://x/1"])]),
        (None, []),
    ):
        table, _ = read(tmp_path, PREFIXES + turtle, purpose)
        assert table.filter(~pl.col("deprecated"))["label"].to_list() == [
            "http://x/1",
            "http://x/2",
        ]
        assert table.filter("deprecated").select("label", "replaced_by").rows() == replaced


def test_another_name_than_skos_is_said(tmp_path: Path) -> None:
    assert (
        "1 concepts are named by <http://www.w3.org/2000/01/rdf-schema#label>"
        in read(tmp_path, PREFIXES + 'x:1 rdfs:label "Oil" .')[1]
    )


THREE = (
    PREFIXES + 'x:1 skos:prefLabel "Oil"@en, "Öl"@de, "Öljy"@fi ; skos:altLabel "Erdöl"@de . x:2 '
    'skos:prefLabel "Gas"@en, "Kaasu"@fi .'
)
TABLE = "uri\tlabel_en\tlabel_ger\tlabel_fi\nhttp://x/1\tOil\tÖl\tÖljy\nhttp://x/2\tGas\t\tKaasu\n"
JSKOS = "\n".join(
    json.dumps(
        {
            "@context": "https://gbv.github.io/jskos/context.json",
            "uri": f"http://x/{number}",
            "prefLabel": labels,
            **more,
        }
    )
    for number, labels, more in (
        (
            1,
            {"en": "Oil", "de": "Öl", "fi": "Öljy", "-": "…"},
            {"altLabel": {"de": ["Erdöl"]}, "broader": [{"uri": "http://x/2"}, None]},
        ),
        (2, {"en": "Gas", "fi": "Kaasu"}, {"notation": ["G"]}),
    )
)


@pytest.mark.parametrize(
    "content",
    [
        THREE,
        TABLE,
        JSKOS,
        f"[{JSKOS.replace(chr(10), ',')}]",
        f'{{"concepts": [{JSKOS.splitlines()[1]}, {JSKOS.splitlines()[0]}]}}',
    ],
)
@pytest.mark.parametrize(
    ("spoken", "language", "titles", "said"),
    [
        ({"fi": 0.16}, None, ["Öljy", "Kaasu"], "titles in fi: the documents are in Finnish"),
        (
            {"de": 0.6, "en": 0.3},
            None,
            ["Öl", "Gas"],
            "titles in de, further names in en: the documents are in German and English",
        ),
        ({"es": 0.9}, None, ["Oil", "Gas"], "titles in en, though the documents are in Spanish"),
        ({}, None, ["Oil", "Gas"], "titles in en (the language of the documents is not recognised"),
        (
            {"fi": 0.9},
            "de",
            ["Öl", "Gas"],
            "1 concepts have no title in 'de' and take one in another language",
        ),
    ],
)
def test_the_language_of_the_documents_is_preferred(
    content: str,
    spoken: dict[str, float],
    language: str | None,
    titles: list[str],
    said: str,
    tmp_path: Path,
) -> None:
    table, remarks = read(tmp_path, content, Purpose(language, spoken=lambda: spoken))
    assert table.sort("label")["title"].to_list() == titles
    assert said in remarks
    names = table.sort("label")["alternatives"].to_list()
    assert ("Oil" in names[0]) == ("en" in spoken)


@pytest.mark.parametrize("spoken", [{}, {"es": 0.9}])
def test_a_language_that_is_not_recognised_is_that_in_which_documents_name_their_labels(
    spoken: dict[str, float], tmp_path: Path
) -> None:
    sample = [
        ("öljy!", ["http://x/1"]),
        ("kaasut, öljy", ["http://x/1", "http://x/2"]),
        ("Gas in oil", ["http://x/3"]),
    ]
    table, remarks = read(tmp_path, THREE, Purpose(spoken=lambda: spoken, sample=lambda: sample))
    assert table["title"].to_list() == ["Öljy", "Kaasu"]
    assert "titles in fi: documents name their labels in it" in remarks
    assert read(tmp_path, THREE, Purpose(sample=lambda: sample[:1]))[0]["title"].to_list() == [
        "Oil",
        "Gas",
    ]  # once is no proof


def test_texts_in_norwegian_take_names_in_bokmal(tmp_path: Path) -> None:
    table, _ = read(
        tmp_path,
        PREFIXES + 'x:1 skos:prefLabel "Oil"@en, "Olje"@nb .',
        Purpose(spoken=lambda: {"no": 0.9}),
    )
    assert table["title"].to_list() == ["Olje"]
    assert is_spoken("de", ["ger"])
    assert is_spoken("en", ["en_GB"])
    assert not is_spoken("en-GB", ["en"])


def test_one_language_is_not_asked_for_where_no_title_has_a_tag(tmp_path: Path) -> None:
    def never() -> dict[str, float]:
        raise AssertionError

    assert read(tmp_path, PREFIXES + 'x:1 skos:prefLabel "Oil" .', Purpose(spoken=never))[0][
        "title"
    ].to_list() == ["Oil"]


TABULAR = """<ICD10CM.tabular><chapter><name>1</name><desc>Chapter</desc><section id="S50-S59"><desc>Section</desc>
<diag><name>S52</name><desc>Fracture of forearm</desc><sevenChrDef><extension char="A">initial encounter</extension></sevenChrDef>
<excludes1><note>amputation (S58.-)</note></excludes1>
<diag><name>S52.5</name><desc>Fracture, lower end</desc><inclusionTerm><note>Colles' &amp; other</note></inclusionTerm></diag></diag>
</section></chapter></ICD10CM.tabular>"""
CLAML = """<!DOCTYPE ClaML SYSTEM "ClaML.dtd"><ClaML version="2.0.0">
<Modifier code="M1"/><ModifierClass modifier="M1" code=".9">
<Rubric kind="preferred"><Label xml:lang="de">ohne Koma</Label></Rubric></ModifierClass>
<Class code="IV" kind="chapter"><Rubric kind="preferred"><Label xml:lang="de">Kapitel</Label></Rubric></Class>
<Class code="E11" kind="category"><SuperClass code="IV"/><ModifiedBy code="M1"/>
<Rubric kind="preferred"><Label xml:lang="de">Diabetes</Label></Rubric>
<Rubric kind="inclusion">
<Label xml:lang="de">Altersdiabetes (<Reference>E10.-</Reference>) des <Term>Erwachsenen</Term></Label></Rubric></Class></ClaML>"""
MESH = """<?xml version="1.0"?><DescriptorRecordSet LanguageCode="eng">
<DescriptorRecord><DescriptorUI>D1</DescriptorUI><DescriptorName><String>Organisms</String></DescriptorName>
<TreeNumberList><TreeNumber>B01</TreeNumber></TreeNumberList></DescriptorRecord>
<DescriptorRecord><DescriptorUI>D2</DescriptorUI><DescriptorName><String>Humans</String></DescriptorName>
<TreeNumberList><TreeNumber>B01.050</TreeNumber></TreeNumberList><ConceptList>
<Concept PreferredConceptYN="Y"><ScopeNote>People.</ScopeNote>
<TermList><Term><String>Humans</String></Term>
<Term><String>Homo sapiens</String></Term></TermList></Concept></ConceptList></DescriptorRecord>
</DescriptorRecordSet>"""
OBO = """format-version: 1.2
ontology: hp

[Term]
id: HP:1
name: All
is_obsolete: true

[Term]
id: HP:2
name: Seizure
def: "A \\"fit\\"." [HPO:x]
synonym: "Epileptic seizure" EXACT [UMLS:y]
is_a: HP:1 ! All

[Typedef]
id: part_of
name: part of
"""


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (OBO, [("HP:1", "All", [], []), ("HP:2", "Seizure", ["Epileptic seizure"], ["HP:1"])]),
        (
            TABULAR,
            [
                ("S52", "Fracture of forearm", [], []),
                ("S52.5", "Fracture, lower end", ["Colles' & other"], ["S52"]),
                ("S52.5XXA", "Fracture, lower end, initial encounter", [], ["S52.5"]),
            ],
        ),
        (
            CLAML,
            [
                ("E11", "Diabetes", ["Altersdiabetes des Erwachsenen"], []),
                ("E11.9", "Diabetes: ohne Koma", [], ["E11"]),
            ],
        ),
        (MESH, [("D1", "Organisms", [], []), ("D2", "Humans", ["Homo sapiens"], ["D1"])]),
    ],
)
def test_classifications(content: str, rows: list[tuple[object, ...]], tmp_path: Path) -> None:
    table, _ = read(tmp_path, content)
    assert table.select("label", "title", "alternatives", "parents").rows() == rows


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "utf-8", "UTF-16", "windows-1252"])
def test_xml_is_in_the_encoding_that_it_declares(encoding: str, tmp_path: Path) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?>{CLAML.replace('Diabetes', 'Zöliakie')}"
    (tmp_path / "v").write_bytes(text.encode(encoding))
    assert read_vocabulary(tmp_path / "v", encoding="cp1250")[0]["title"][0] == "Zöliakie"
    rdf = (
        'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:skos="http://www.w3.org/2004/02/skos/core#"'
    )
    text = (
        f"<rdf:RDF {rdf}><skos:Concept "
        "rdf:about='http://x/1'><skos:prefLabel>Öl</skos:prefLabel></skos:Concept></rdf:RDF>"
    )
    assert read(tmp_path, f"<?xml version='1.0' encoding='{encoding}'?>{text}".encode(encoding))[0][
        "title"
    ].to_list() == ["Öl"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (
            '<!DOCTYPE ClaML [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><ClaML>&b;</ClaML>',
            "entities that hold others",
        ),
        (
            '<!DOCTYPE ClaML [<!ENTITY a SYSTEM "file:///etc/passwd">]><ClaML>&a;</ClaML>',
            "entities that hold others",
        ),
        (
            f'<!DOCTYPE rdf:RDF [<!ENTITY a "{"a" * 2000}">]><rdf:RDF>&a;</rdf:RDF>',
            "entities that hold others",
        ),
        ('<!DOCTYPE ClaML [<!ENTITY % a "b">]><ClaML/>', "entities that hold others"),
        ("<?xml version='1.0'?><ClaML><Class></ClaML>", "the XML cannot be read"),
        (
            "<ClaML>" + "<a>" * 100_000 + "</a>" * 100_000 + "</ClaML>",
            "the vocabulary holds no labels",
        ),
        (
            '<?xml version="1.0"?><ICD10CM.index/>',
            "XML of this kind is not known: its first element is <ICD10CM.index>",
        ),
        ('{"uri": "x", "prefLabel": {"en": ', "the vocabulary cannot be parsed"),
    ],
)
def test_xml_that_is_refused(content: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=what):
        read(tmp_path, content)


def test_short_entities_as_ontologies_have_them_are_read(tmp_path: Path) -> None:
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    text = f"""<?xml version="1.0"?><!DOCTYPE rdf:RDF [ <!ENTITY owl "http://www.w3.org/2002/07/owl#" > ]>
    <rdf:RDF xmlns:rdf="{rdf}" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
    <rdf:Description rdf:about="http://x/1"><rdf:type rdf:resource="&owl;Class"/><rdfs:label>Oil</rdfs:label></rdf:Description></rdf:RDF>"""
    assert read(tmp_path, text)[0].select("label", "title").rows() == [("http://x/1", "Oil")]
