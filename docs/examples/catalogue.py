"""Make the catalogue of the tutorial: `python docs/examples/catalogue.py` writes catalogue.csv
and new.csv here.
"""

import csv
import random

SUBJECTS = {
    "Urban gardens": "rooftops allotments balcony vegetables city neighbours",
    "Beekeeping": "bee hives swarms honey keeper blossom",
    "Water mills": "mill millers weirs waterwheel grain millstone",
    "Rivers": "river weirs floods stream banks boats",
    "Bridges": "bridge arches spans river piers engineers",
    "Canals": "canal locks boats towpath freight",
    "Railways": "trains tracks locomotives stations freight",
    "Cities": "city streets districts planning rooftops",
    "Botany": "plants leaves blossom seeds forest",
    "Birds": "birds nests feathers migration forest",
    "Forests": "forest timber trees clearing rangers",
    "Agriculture": "fields harvest grain farmers seeds",
    "Wine": "vineyards harvest cellars grapes barrels",
    "Cookery": "recipes kitchen vegetables honey spices",
    "Monasteries": "monks abbey cellars charters cloister",
    "Manuscripts": "parchment scribes charters script initials",
    "Printing": "press types ink printers pamphlets",
    "Censorship": "pamphlets bans police printers trials",
    "Law": "courts judges contracts trials statutes",
    "Schools": "pupils teachers lessons classrooms reform",
    "Exhibition catalogue": "objects display museum photographs collection",
    "Photography": "photographs lenses negatives studios portraits",
}
COMMON = (
    "history study sources new early local century region work people change life account "
    "essays family letters years"
)
PATTERNS = (
    "The volume compares {}, {} and {}.",
    "A study of {} and {}, with {}.",
    "From {} to {}: {} in {}.",
    "How {} changed {} and {}.",
)


def write(path: str, count: int, seed: int, *, labelled: bool) -> None:
    """A table of records: each has one to three subjects, and a quarter of the words in its
    sentences are theirs.
    """
    draw, names = random.Random(seed), list(SUBJECTS)
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "title", "abstract", *(["subjects"] if labelled else [])])
        for number in range(count):
            wanted = draw.choices(
                names, [1 / (rank + 4) for rank in range(len(names))], k=draw.choice([1, 1, 2, 3])
            )
            own = [word for subject in wanted for word in SUBJECTS[subject].split()]
            title, *sentences = (
                pattern.format(
                    *(
                        draw.choice(own if draw.random() < 0.25 else COMMON.split())
                        for _ in range(pattern.count("{}"))
                    )
                )
                for pattern in draw.choices(PATTERNS, k=4)
            )
            row = [f"{'r' if labelled else 'n'}{number:04}", title.rstrip("."), " ".join(sentences)]
            rows.writerow([*row, ";".join(dict.fromkeys(wanted))] if labelled else row)


if __name__ == "__main__":
    write("catalogue.csv", 600, 0, labelled=True)
    write("new.csv", 20, 1, labelled=False)
