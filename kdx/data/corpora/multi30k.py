"""Multi30k, task 1 (Elliott et al. 2016): captions of photographs, German to English, lower-cased and tokenised.

The test split is test_2016_flickr. The text is in the folder `tok`; the raw text next to it is another corpus, with
another name. The address is the authors' repository at the version of this text.
"""

from kdx.data.text import KnownFile, KnownText

TEXT = KnownText(
    suffixes=("de", "en"),
    folder="tok",
    licence="none stated by its authors; research use",
    tokenised=True,
    address="https://github.com/multi30k/dataset/archive/a3d2e0d26b56f3846f66a952536ffed4e401d05a.tar.gz",
    names={
        f"{published}.lc.norm.tok.{language}": f"{split}.{language}"
        for published, split in (("train", "train"), ("val", "valid"), ("test_2016_flickr", "test"))
        for language in ("de", "en")
    },
    files={
        "train.de": KnownFile(29000, "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
        "train.en": KnownFile(29000, "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
        "valid.de": KnownFile(1014, "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
        "valid.en": KnownFile(1014, "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
        "test.de": KnownFile(1000, "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"),
        "test.en": KnownFile(1000, "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"),
    },
)
