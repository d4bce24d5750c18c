"""The options and arguments of all commands: one dataclass, whose fields say how each is written and read."""

# ruff: noqa: RUF009  (what makes a field here is dataclasses.field with metadata)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rankrls._kernel_table import KERNELS
from rankrls.cli._data_options import DataOptions
from rankrls.cli._declared import argument, declared, flags_of, option, switch
from rankrls.cli._together import check_together
from rankrls.cli._values import fills, grid, number, numbers, separated, shares, signs, word, words
from rankrls.export import ENGINES
from rankrls.selection.rules import RULES

if TYPE_CHECKING:
    from rankrls.io.data import Reading

_LEARN = "fit cv"
_NAMES = ("row", "docid", "comment")
_TABLES = "fit cv predict rank explain evaluate compare convert split"
_READ = f"{_TABLES} info"


@dataclass(frozen=True)
class Options(DataOptions):
    """What one command was told, read and checked; what the command does not have is at its default.

    Attributes
    ----------
    train
        Training data: LETOR / SVMlight text or CSV, plain or gzip; Parquet; Arrow.
    model
        A model that rankrls fit or rankrls.save wrote.
    about
        A model, or data: a file, a folder or a quoted pattern.
    data
        LETOR / SVMlight text or CSV, plain or gzip; Parquet; Arrow.
    models
        Model files, or files of scores as predict writes them.
    files
        The model, and data as for fit.
    first
        An item, as --ids names it.
    second
        Another; without, the mean of A's query is taken.
    file
        Where the export goes; - is standard output.
    out
        Where it goes: a table by its name's ending (.csv, .tsv, .parquet, .arrow), else LETOR text; .gz packs.
    folder
        Where the parts go; made where it is not there.
    save
        Where the model is saved (.rankrls).
    method
        rankrls: exact, by one factorisation; auto: chooses among linear, degree-2 and Gaussian models on raw and
        standardised features; cg: conjugate gradients, for large sparse data; sparse: RankRLS over a basis of few
        items, for kernels on very many rows; pursuit: few features, or with --kernel few items, taken greedily; greedy:
        few features, taken by exact leave-query-out; transductive: also finds labels for queries without any, so that
        cross-validation goes best; co-rankrls: several views that agree on rows without labels, for few scored queries;
        co-pursuit: the same by few features, or with --kernel few items, in each of two views, taken greedily;
        conditional: ranks the same items for each row, with a column of labels for each item; ranksvm: pairwise hinge
        losses, C chosen by refits; rankboost: boosted threshold stumps, their number chosen by --vali.
    vali
        Choose by these data. Without: exact leave-query-out on TRAIN, or what --method can do instead.
    test
        Judge the model on these data, which it never sees.
    scores
        Judge these scores instead of a model: one a line in DATA's order, or a table as predict writes it, matched by
        ids.
    unscored
        Further rows, whose labels are not read, for methods that learn from such rows too. Of a table, rows of TRAIN
        without a label are others.
    pairs
        Learn from preferences between TRAIN's rows instead of its labels: a table of winner, loser and if wanted
        strength, weight, group; text with commas or tabs needs no line that names the columns.
    vali_pairs
        Choose by these preferences: rows of --vali, else of TRAIN.
    test_pairs
        Judge by these preferences: rows of --test, else of TRAIN.
    judged_pairs
        Judge by these preferences between DATA's rows instead of its labels: winner, loser and where wanted strength,
        weight, group (see rankrls fit --help).
    ids
        What names an item where preferences or arguments do. row: the number of its row, from 0; docid: its id, in a
        table's column of ids or behind 'docid =' in its comment; comment: its whole comment. By default what the model
        was fitted with; else docid or row, whichever fits all of them.
    kernel
        {kernels}; or several.
    gamma
        Factor in {gamma}; auto is 1 / features.
    degree
        Degree of {degree}.
    coef0
        Constant in {coef0}.
    alphas
        Regularization values: auto, a list a,b,c, or lo:hi:n for n geometric steps.
    ties
        Pairs with equal labels: include, exclude, or both to choose.
    balance
        What counts the same: pairs, examples, queries; or several.
    regression_weight
        0 ranks, 1 is least squares on the labels themselves.
    scale
        Scale features inside each query: minmax or standard; by the training rows, as search engines can: minmax-all or
        standard-all.
    metric
        Choose by: disagreement (the default), map, ndcg@10, p@5, mrr, tau, ...; pair_accuracy with --pairs.
    metrics
        Measures to print; by default those that suit the labels.
    convention
        Whose NDCG, MAP, ...: letor, trec, sklearn, lightgbm, xgboost, ranklib.
    tied_labels
        Pairs of equal labels in disagreement: left out (ignore, the default), or half an error if kept apart (half).
    rule
        How to choose: {rules}. one_se takes the simplest within one standard error of the best; it is the default of
        auto.
    cv
        K folds of whole queries instead of leave-query-out.
    leave_pair_out
        Leave out each pair of rows instead: the C-index (AUC) of every alpha, with intervals.
    per_query
        Also print each query's value.
    baseline
        Compare the others with this one only.
    html
        Also write the report as one self-contained page.
    title
        Title of the page.
    top_queries
        How many of the queries that changed most to show.
    query
        Look for the items in this query only.
    top_features
        So many features; 0 for all.
    top_items
        Only the best K of each query.
    layout
        tsv: query, rank, item, score, row, between tabs under a line of names; trec: a run as trec_eval reads it.
    names_in_ranking
        What names an item: row (its number, from 0), docid (what follows 'docid =' in its comment), comment; auto is
        docid where every line has one, else row.
    run
        The name of the run, the last word of a trec line.
    engine
        {engines}.
    name
        The model's name in the engine.
    names
        The features' names, one a line, in column order.
    store
        Solr's feature store.
    phase
        Vespa's phase: first-phase, second-phase, global-phase.
    fold
        Fold the scaler into the weights, instead of the engine's normalizers.
    offset
        Add to every score; a file of items: as much as makes theirs positive.
    target
        Which target (from 0) of a model of several.
    parts
        Shares of the queries: train, test; or train, vali, test.
    folds
        Instead: Fold1 to FoldK as LETOR has them, each with its own K-th of the queries to test, the next to validate,
        and the rest to train.
    seed
        Of the draw; the same number, the same parts.
    everything
        One ranking of all rows, whatever their qid; for files without qid.
    output
        Where the scores or the ranking go; - is standard output.
    label
        Of tables: the labels' column; 'label' where there is one.
    qid
        The query ids' column; 'qid' where there is one.
    id
        The column of the items' ids, which --ids docid means; 'docid' where there is one.
    features
        Columns of features, price* for all that begin so; by default all others. A column of lists is all their
        numbers; a name with a comma stands in quotes. Of LETOR text: how many.
    ignore
        Columns that are no features, by names or patterns.
    group
        Rows of each query, one number a line, as LightGBM and XGBoost have them; by default DATA.query or DATA.group
        beside data without qid. Of votes: the column that says what is held out together, such as the prompt.
    event
        Of right-censored times, which are then the labels: the column that is 1 where the event was observed and 0
        where not. Longer times are better; pairs that can be compared are learned from and judged (C-index).
    columns
        Of tables with more than numbers. auto: what each column is used as is decided by its cells, and printed; named:
        what no option names has to be numbers.
    categorical
        Columns of categories; rare, missing and unseen ones have a place of their own.
    dates
        Columns of dates: ages in days, and the time of year and of week.
    text
        Columns of texts: words of the query, and TF-IDF.
    query_text
        The column with the query's text; by default that of --qid, if it holds texts.
    text_features
        Of texts: matches (how many words of the query they have), similarity (TF-IDF cosine with it), word, tfidf.
    impute
        What missing numbers count as: median, mean, most_frequent or a number, or by column as in price=0,age=median.
    date_format
        Of dates such as 3/1/2024, as %m/%d/%Y; ISO dates and 1.3.2024 need none.
    min_frequency
        Rows that a category needs to be one of its own.
    definitions
        Where the definitions of the features go that Solr, Elasticsearch or OpenSearch need of a model of a table; by
        default features.json beside FILE.
    input_format
        letor, csv (or TSV), parquet or arrow (Feather); by default what the file's name ends in.
    as_json
        One JSON object on standard output, and nothing else there.
    threads
        Threads; by default all processors.
    verbose
        Say what is being done, and how long it took.
    quiet
        No progress and no notes; fit prints nothing at all.
    positive
        no weight is negative: all, or of features a,b*,c as TRAIN names or numbers them.
    selection
        tikhonov (alpha), early_stopping (iterations) or hybrid (both).
    max_iter
        iterations at most; by default 500, for ranksvm 100.
    tol
        stop at this precision, relative: cg at a residual, ranksvm at a gap to the minimum.
    patience
        stop when nothing better was found for so many steps.
    random_state
        seed of random draws; 0 by default.
    within_query
        auto: try features that are standardised inside each query too; the model then needs whole queries.
    time_limit
        seconds for the choice; models that do not fit into them are skipped.
    nested
        also judge the whole choice by K outer folds of queries, at K times the price.
    n_basis
        items in the basis; by default 500, for ranksvm all.
    basis
        random rows (default), centres of k-means (kmeans), or rows by pursuit.
    max_features
        features at most, 30 by default; fewer are chosen.
    max_basis
        terms at most, 50 by default; fewer are chosen.
    penalty
        what holds found labels to the supervised prediction; by default 0.1,1,10,100 to choose from.
    nu
        weights of agreement to choose from, by default 0,0.01,0.1,1.
    mu
        weights of agreement to choose from; by default relative to the data.
    n_views
        views, random halves of the features; 16 by default.
    Cs
        weights of the loss to choose from: auto, a,b,c or lo:hi:n.
    loss
        squared_hinge (default) or hinge.
    n_estimators
        stumps at most, 300 by default.
    learning_rate
        what a stump's weight is multiplied by, 0 to 1.
    max_bins
        distinct thresholds of a feature, at most; 256 by default.
    """

    train: Path = argument("TRAIN", _LEARN)
    model: Path = argument("MODEL", "predict rank explain export")
    about: Path = argument("FILE", "info")
    data: Path = argument("DATA", "predict rank explain compare convert split")
    models: tuple[Path, ...] = argument("MODEL...", "compare", nargs=-1)
    files: tuple[Path, ...] = argument("[MODEL] DATA", "evaluate", nargs=-1)
    first: str = argument("A", "explain", str)
    second: str | None = argument("[B]", "explain", str, required=False)
    file: str = argument("FILE", "export", str)
    out: Path = argument("OUT", "convert")
    folder: Path = argument("FOLDER", "split")
    save: Path = option("FILE", "fit", kind=Path, flags=("--model", "-m"), required=True)
    method: str = option("NAME", _LEARN, "rankrls")
    vali: Path | None = option("FILE", _LEARN, kind=Path)
    test: Path | None = option("FILE", "fit", kind=Path)
    scores: Path | None = option("FILE", "evaluate", kind=Path)
    unscored: Path | None = option("FILE", _LEARN, kind=Path)
    pairs: Path | None = option("FILE", _LEARN, kind=Path)
    vali_pairs: Path | None = option("FILE", _LEARN, kind=Path)
    test_pairs: Path | None = option("FILE", "fit", kind=Path)
    judged_pairs: Path | None = option("FILE", "evaluate", kind=Path, flags=("--pairs",))
    ids: str | None = option("WORD", "fit cv evaluate explain", reads=word(*_NAMES))
    kernel: Any = option("NAME[,NAME]", _LEARN, "linear", reads=words(*KERNELS))
    gamma: Any = option("G[,G]", _LEARN, "auto", reads=numbers(float, auto=True))
    degree: Any = option("D[,D]", _LEARN, "3", reads=numbers(int))
    coef0: Any = option("C[,C]", _LEARN, "1", reads=numbers(float))
    alphas: Any = option("GRID", _LEARN, "auto", reads=grid)
    ties: Any = option("WORD", _LEARN, "include", reads=words("include", "exclude", everything="both"))
    balance: Any = option("WORD[,WORD]", _LEARN, "examples", reads=words("pairs", "examples", "queries"))
    regression_weight: float = option("B", _LEARN, 0.0, float, reads=number(0, 1))
    scale: str = option("WORD", _LEARN, "none", reads=word("none", "minmax", "standard", "minmax-all", "standard-all"))
    metric: str | None = option("NAME", _LEARN)
    metrics: tuple[str, ...] | None = option("NAME,...", "fit cv evaluate compare", reads=separated)
    convention: str = option("TOOL", "fit cv evaluate compare", "letor")
    tied_labels: str | None = option("WORD", "fit cv evaluate compare", reads=word("ignore", "half"))
    rule: str | None = option("WORD", _LEARN, reads=word(*RULES))
    cv: int | None = option("K", _LEARN, kind=int, reads=number(2))
    leave_pair_out: bool = switch("cv")
    per_query: bool = switch("evaluate")
    baseline: Path | None = option("MODEL", "compare", kind=Path)
    html: Path | None = option("FILE", "compare", kind=Path)
    title: str | None = option("TEXT", "compare")
    top_queries: int = option("N", "compare", 5, int, reads=number(1), flags=("--top",))
    query: str | None = option("QID", "explain")
    top_features: int = option("K", "explain", 10, int, reads=number(0), flags=("--top", "-k"))
    top_items: int | None = option("K", "rank", kind=int, reads=number(1), flags=("--top", "-k"))
    layout: str = option("WORD", "rank", "tsv", reads=word("tsv", "trec"), flags=("--format",))
    names_in_ranking: str = option("WORD", "rank", "auto", reads=word("auto", *_NAMES), flags=("--ids",))
    run: str = option("NAME", "rank", "rankrls")
    engine: str = option("WORD", "export", reads=word(*ENGINES), flags=("--format",), required=True)
    name: str = option("NAME", "export", "rankrls")
    names: Path | None = option("FILE", "explain export convert", kind=Path)
    store: str | None = option("NAME", "export")
    phase: str = option("WORD", "export", "second-phase")
    fold: bool = switch("export")
    offset: str | None = option("NUMBER|FILE", "export")
    target: int | None = option("K", "rank explain export", kind=int)
    parts: list[float] = option("A,B[,C]", "split", "60,20,20", reads=shares)
    folds: int | None = option("K", "split", kind=int, reads=number(3, why="to train, validate and test"))
    seed: int = option("N", "split", 0, int, reads=number(0))
    everything: bool = switch("fit cv rank evaluate", "--global")
    output: str = option("FILE", "predict rank", "-", flags=("--output", "-o"))
    label: str | None = option("COLUMN", _READ)
    qid: str | None = option("COLUMN", _READ)
    id: str | None = option("COLUMN", _READ)
    features: tuple[str, ...] | None = option("NAME,...|N", _READ, reads=separated)
    ignore: tuple[str, ...] | None = option("NAME,...", _READ, reads=separated)
    group: str | None = option("FILE|COLUMN", _TABLES)
    event: str | None = option("COLUMN", "fit cv evaluate")
    columns: str | None = option("WORD", _LEARN, reads=word("auto", "named"))
    categorical: tuple[str, ...] | None = option("NAME,...", _LEARN, reads=separated)
    dates: tuple[str, ...] | None = option("NAME,...", _LEARN, reads=separated)
    text: tuple[str, ...] | None = option("NAME,...", _LEARN, reads=separated)
    query_text: str | None = option("COLUMN", _LEARN)
    text_features: Any = option("WORD,...", _LEARN, reads=separated)
    impute: Any = option("HOW", _LEARN, reads=fills)
    date_format: str | None = option("FORMAT", _LEARN)
    min_frequency: int | None = option("N", _LEARN, kind=int, reads=number(1))
    definitions: Path | None = option("FILE", "export", kind=Path)
    input_format: str | None = option("WORD", _READ, reads=word("letor", "csv", "parquet", "arrow"))
    as_json: bool = switch("fit cv explain evaluate compare split info", "--json")
    threads: int | None = option("N", "fit cv predict rank evaluate compare", kind=int, reads=number(1))
    verbose: bool = switch(_TABLES, "--verbose", "-v")
    quiet: bool = switch(f"{_TABLES} export", "--quiet", "-q")
    positive: Any = option("LIST", _LEARN, reads=signs)
    selection: str | None = option("WORD", _LEARN, reads=word("tikhonov", "early_stopping", "hybrid"))
    max_iter: int | None = option("N", _LEARN, kind=int, reads=number(1))
    tol: float | None = option("T", _LEARN, kind=float, reads=number(0))
    patience: int | None = option("N", _LEARN, kind=int, reads=number(1))
    random_state: int | None = option("SEED", _LEARN, kind=int, reads=number(0, 2**32 - 1))
    within_query: bool = switch(_LEARN)
    time_limit: float | None = option("SECONDS", _LEARN, kind=float, reads=number(0))
    nested: int | None = option("K", _LEARN, kind=int, reads=number(2))
    n_basis: int | None = option("R", _LEARN, kind=int, reads=number(1))
    basis: str | None = option("HOW", _LEARN, reads=word("random", "kmeans", "pursuit"))
    max_features: int | None = option("K", _LEARN, kind=int, reads=number(1))
    max_basis: int | None = option("P", _LEARN, kind=int, reads=number(1))
    penalty: Any = option("G[,G]", _LEARN, reads=numbers(float))
    nu: Any = option("N[,N]", _LEARN, reads=numbers(float))
    mu: Any = option("M[,M]", _LEARN, reads=numbers(float))
    n_views: int | None = option("M", _LEARN, kind=int, reads=number(1))
    Cs: Any = option("LIST", _LEARN, reads=grid)
    loss: str | None = option("NAME", _LEARN, reads=word("squared_hinge", "hinge"))
    n_estimators: int | None = option("N", _LEARN, kind=int, reads=number(1))
    learning_rate: float | None = option("R", _LEARN, kind=float, reads=number())
    max_bins: int | None = option("N", _LEARN, kind=int, reads=number(2))

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """The options from what was written, by field.

        Raises
        ------
        ValueError
            For a value that cannot be, with the option.
        """
        values: dict[str, Any] = {}
        for name, each in declared(cls).items():
            value = given.get(name, each.default)
            values[name] = value if value is None or each.reads is None else each.reads(name, value)
        told = [name for name, each in declared(cls).items() if given.get(name) not in (None, each.default)]
        check_together(told)
        return cls(**values)

    @property
    def opening(self) -> dict[str, Any]:
        """How data that are read a part at a time are opened."""
        said = {"label": self.label, "qid": self.qid, "id": self.id, "features": self.features}
        return {**said, "ignore": self.ignore or (), "format": self.input_format or "auto"}

    def reading(self, **how: Any) -> Reading:
        """How files of rows are read."""
        from rankrls.io.data import Reading

        sizes = None if self.group is None or self.votes else Path(self.group)
        said = self.opening | {"format": self.input_format, "event": self.event, "utilities": self.utilities}
        return Reading(**said, sizes=sizes, **how)

    @property
    def votes(self) -> bool:
        """Whether the files hold votes, with both sides in a row."""
        return any(value is not None for value in (self.winner, self.loser, self.left, self.right, self.preferred))

    @property
    def by_pairs(self) -> bool:
        """Whether preferences are learned from, wherever they come from."""
        return self.pairs is not None or self.votes or self.event is not None

    @property
    def pair_measure(self) -> str:
        """What the share of preferences in the right order is called."""
        return "pair_accuracy" if self.event is None else "C-index"

    @property
    def item_ids(self) -> str | None:
        """``--ids``, if ``--id`` alone does not say it too; None if neither is given."""
        return "docid" if self.ids is None and self.id is not None else self.ids

    def changed(self) -> list[str]:
        """The fields that are not at their defaults."""
        usual = type(self).read({})
        return [name for name in declared(type(self)) if getattr(self, name) != getattr(usual, name)]


def names_of_options() -> dict[str, Any]:
    """The fields that are options, with their defaults as they are written."""
    return {name: each.default for name, each in declared(Options).items() if not each.argument}


def flag_of(name: str) -> str:
    """How an option is written in full."""
    return flags_of(name, declared(Options)[name])[0]
