"""What is known of each named corpus: licence, citation, where to get it, what is expected in it."""

from __future__ import annotations

from plant_cli.api import DatasetCard

_REPOSITORY = "http://manikvarma.org/downloads/XC/XMLRepository.html"
_PECOS = "https://archive.org/download/pecos-dataset/xmc-base/{name}.tar.gz"
_UNSTATED = "not stated by those who hand it out"
_BHATIA = "Bhatia, K. et al. (2016). The extreme classification repository: Multi-label datasets and code."
_MCAULEY = "McAuley, J. & Leskovec, J. (2013). Hidden factors and hidden topics: understanding rating dimensions with review text. RecSys."
_FILES = "the unpacked folder, in any of the formats that are recognised (PECOS, XML repository, AttentionXML, …)"


def _counts(train: int, test: int, labels: int) -> dict[str, int]:
    return {"train": train, "test": test, "labels": labels}


CARDS = {
    "eurlex-4k": DatasetCard(
        title="EURLEX-4K: laws of the European Union with EuroVoc descriptors",
        licence=_UNSTATED + "; texts are of the European Union",
        citation="Loza Mencía, E. & Fürnkranz, J. (2008). Efficient pairwise multilabel classification for large-scale problems in the "
        "legal domain. ECML PKDD.",
        source=f"{_PECOS.format(name='eurlex-4k')} or {_REPOSITORY}",
        files=_FILES,
        variants={
            "as AttentionXML, X-Transformer and PECOS have it": _counts(15_449, 3_865, 3_956),
            "as the XML repository has it": _counts(15_539, 3_809, 3_993),
        },
    ),
    "wiki10-31k": DatasetCard(
        title="WIKI10-31K: articles of Wikipedia with social tags",
        licence=_UNSTATED + "; texts of Wikipedia are under CC-BY-SA",
        citation="Zubiaga, A. (2012). Enhancing navigation on Wikipedia with social tags. arXiv:1202.5469.",
        source=f"{_PECOS.format(name='wiki10-31k')} or {_REPOSITORY}",
        files=_FILES,
        variants={"as all publish it": _counts(14_146, 6_616, 30_938)},
    ),
    "amazoncat-13k": DatasetCard(
        title="AmazonCat-13K: descriptions of products with their categories",
        licence=_UNSTATED,
        citation=_MCAULEY,
        source=f"{_PECOS.format(name='amazoncat-13k')} or {_REPOSITORY}",
        files=_FILES,
        variants={"as all publish it": _counts(1_186_239, 306_782, 13_330)},
    ),
    "amazon-670k": DatasetCard(
        title="Amazon-670K: descriptions of products with products bought together",
        licence=_UNSTATED,
        citation=_MCAULEY,
        source=f"{_PECOS.format(name='amazon-670k')} or {_REPOSITORY}",
        files=_FILES,
        variants={"as all publish it": _counts(490_449, 153_025, 670_091)},
    ),
    "lf-amazontitles-131k": DatasetCard(
        title="LF-AmazonTitles-131K: titles of products with related products",
        licence=_UNSTATED,
        citation=_BHATIA,
        source=_REPOSITORY,
        files="the unpacked folder: trn.json.gz, tst.json.gz, lbl.json.gz, filter_labels_test.txt",
        variants={"as the XML repository has it": _counts(294_805, 134_835, 131_073)},
    ),
    "lf-wikipedia-500k": DatasetCard(
        title="LF-Wikipedia-500K: articles of Wikipedia with their categories",
        licence=_UNSTATED + "; texts of Wikipedia are under CC-BY-SA",
        citation=_BHATIA,
        source=_REPOSITORY,
        files="the unpacked folder: trn.json.gz, tst.json.gz, lbl.json.gz, filter_labels_test.txt",
        variants={"as the XML repository has it": _counts(1_813_391, 783_743, 501_070)},
    ),
    "eurlex57k": DatasetCard(
        title="EURLEX57K: laws of the European Union, whole texts, with EuroVoc concepts",
        licence="CC-BY-SA-4.0 (texts of the European Union)",
        citation="Chalkidis, I., Fergadiotis, M., Malakasiotis, P. & Androutsopoulos, I. (2019). Large-scale multi-label text "
        "classification on EU legislation. ACL.",
        source="http://nlp.cs.aueb.gr/software_and_datasets/EURLEX57K/",
        files="the unpacked folder: train/, dev/ and test/ with a JSON file for each law; a file of EuroVoc names beside gives titles",
        variants={"as published": {"train": 45_000, "validation": 6_000, "test": 6_000, "labels": 4_271}},
    ),
    "codiesp": DatasetCard(
        title="CodiEsp: Spanish clinical cases with ICD-10 codes and the spans that justify them",
        licence="CC-BY-4.0",
        citation="Miranda-Escalada, A., Gonzalez-Agirre, A., Armengol-Estapé, J. & Krallinger, M. (2020). Overview of automatic clinical "
        "coding: annotations, guidelines, and solutions for non-English clinical cases at CodiEsp track of CLEF eHealth 2020.",
        source="https://doi.org/10.5281/zenodo.3625746",
        files="the folder final_dataset_v…_to_publish: train/, dev/ and test/ with text_files/ and trainD.tsv, trainP.tsv, trainX.tsv, …",
        variants={
            "as published": {"train": 500, "validation": 250, "test": 250},
            "without gold of test": {"train": 500, "validation": 250},
            "without gold of test, dev cut into two": {"train": 500, "validation": 72, "test": 178, "labels": 2_921},
        },
    ),
    "reuters-21578": DatasetCard(
        title="Reuters-21578, Distribution 1.0: newswire stories of 1987 with topics",
        licence="free distribution for research purposes only (Reuters Ltd. and Carnegie Group, Inc.)",
        citation="Lewis, D. D. (1997). Reuters-21578 Text Categorization Test Collection, Distribution 1.0.",
        source="http://www.daviddlewis.com/resources/testcollections/reuters21578/",
        files="the unpacked folder: reut2-000.sgm to reut2-021.sgm",
        variants={
            "ModApte": {"train": 9_603, "test": 3_299},
            "ModLewis": {"train": 13_625, "test": 6_188},
            "LEWISSPLIT, all categories, each text once": {"train": 10_927, "validation": 1_201, "test": 5_356, "labels": 429},
        },
    ),
    "tibkat": DatasetCard(
        title="TIBKAT (LLMs4Subjects): catalogue records of the TIB with subject headings of the GND",
        licence="CC-BY-4.0 or CC-BY-SA-4.0: its sources disagree",
        citation="D'Souza, J., Sadruddin, S., Israel, H., Begoin, M. & Slawig, D. (2025). SemEval-2025 Task 5: LLMs4Subjects. "
        "arXiv:2504.07199.",
        source="https://github.com/sciknoworg/llms4subjects, shared-task-datasets/TIBKAT/{all-subjects,tib-core-subjects}/data",
        files="the folder data: train/, dev/ and test/ with TYPE/LANGUAGE/*.jsonld",
        variants={
            "tib-core-subjects": {"train": 41_902, "validation": 6_980},
            "all-subjects": {"train": 85_489, "validation": 14_245},
            "all-subjects of the second task": {"train": 90_452, "validation": 19_949, "test": 27_998},
            "dev of tib-core-subjects in English, each text once": {"train": 5_585, "validation": 355, "test": 1_036, "labels": 9_021},
        },
    ),
}
