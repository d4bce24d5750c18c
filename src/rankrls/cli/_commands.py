"""The commands and their help. What a command does is in ``run`` of the module of its name, imported when it runs.

The first line of a docstring is the command's line in ``rankrls --help``; its last paragraph is the example.
"""

from __future__ import annotations

import inspect


def fit() -> None:
    """Choose, fit, judge and save a model.

    Every value of alpha is judged, by validation data or by leaving out each query in turn, at about the price of one
    fit. The model file says where it comes from (see rankrls info). A method that goes step by step keeps its best
    model where it is interrupted (Ctrl-C): it is saved, and the exit status is 130.

    Example: rankrls fit train.txt --vali vali.txt --test test.txt --scale minmax --metric map --model m.rankrls   (or
    from preferences: rankrls fit items.txt --pairs votes.csv --ids docid --model m.rankrls)
    """


def cv() -> None:
    """Judge every candidate model, save none.

    By leaving out each query (or preference) in turn, exactly and without refitting, by --cv K folds of them, by
    --vali, or by --leave-pair-out: for a few precious rows with --global, or the pairs inside queries.

    Example: rankrls cv train.txt --scale minmax --metric ndcg@10 --ties both --alphas 1e-3:1e3:13
    """


def predict() -> None:
    """Score the rows of a file.

    One line a row, in the file's order. Higher is better; only differences inside a query mean anything. Numbers are
    written so that reading them gives the same number again. A model of several targets writes one score each,
    separated by tabs. With -o a name that ends in .csv, .tsv, .parquet or .arrow: a table with the query ids, the
    items' ids and the scores.

    Example: rankrls predict m.rankrls test.txt -o scores.txt
    """


def rank() -> None:
    """List the items of each query, best first.

    Queries come in the file's order. Items of equal scores stand in the file's order, except in a trec run: there as
    trec_eval orders them, by the score in single precision and then the greater document id first. With -o a name that
    ends in .csv, .tsv, .parquet or .arrow: a table of the same columns.

    Example: rankrls rank m.rankrls test.txt --top 10  (for trec_eval: --format trec -o run.txt)
    """


def explain() -> None:
    """Say why item A stands above item B, feature by feature.

    What each feature adds to the difference of the scores, the largest part first: of linear models. Behind a scaler
    the values are scaled ones.

    Example: rankrls explain m.rankrls test.txt 12 7  (or by document: --ids docid --query 3 doc12 doc7)
    """


def evaluate() -> None:
    """Judge the ranking of a file's queries.

    By a model, or by a file of scores. Each measure comes with a 95 % interval, by drawing queries with replacement
    (2000 times, always the same).

    Example: rankrls evaluate m.rankrls test.txt --metrics map,ndcg@10  (or: --scores scores.txt test.txt)
    """


def compare() -> None:
    """Compare several rankings of one file query by query.

    Means with 95 % bootstrap intervals, paired randomisation and Wilcoxon tests adjusted by Holm, queries won and
    lost, and the queries that changed most. A table; with --json an object, with --html a page with charts.

    Example: rankrls compare test.txt a.rankrls b.rankrls --metrics map,ndcg@10 --html report.html
    """


def export() -> None:
    """Write a model in the format of a search engine or of ONNX.

    The engines' own formats hold linear models, behind scalers that treat every document alike; ONNX holds kernels
    too. What the engine has to know besides goes to standard error.

    Example: rankrls export m.rankrls model.json --format solr --names features.txt --name my_model
    """


def convert() -> None:
    """Write data in another format, or as Parquet shards of any size.

    Labels, query ids, items' ids and features, and every number to the last bit. An item's id is "docid = ..." in the
    comment of a line of LETOR text. Features of LETOR text are called f1, f2, ... unless --names says otherwise.

    Example: rankrls convert train.txt train.parquet  (or: rankrls convert shop.csv shop.txt --label grade; or, of any
    size: rankrls convert huge.txt shards --rows-per-file 1000000)
    """


def split() -> None:
    """Split a file into parts of whole queries.

    No query is in two parts. Queries are drawn at random; which part one comes to depends on --seed and the query ids,
    not on the order of the rows. Rows are passed on as they are, all their columns and comments, in the file's order.
    Rows without query ids, whose queries are in DATA.query or --group, get such a file beside each part. The parts
    appear together when all are written. Parts of an earlier split are replaced together, if the folder holds nothing
    else.

    Example: rankrls split all.csv parts --qid query  (or five folds: rankrls split all.txt folds --folds 5)
    """


def info() -> None:
    """Show where a model comes from, or what is in data.

    Of a model: data, versions, parameters, how they were chosen, and measures; the model itself is not loaded. Of data:
    rows, queries, labels and features; only query ids and labels are read.

    Example: rankrls info m.rankrls --json   (or of data: rankrls info 'shards/*.parquet' --label grade --qid query)
    """


COMMANDS = {
    command.__name__: inspect.cleandoc(command.__doc__ or "")
    for command in (fit, cv, predict, rank, explain, evaluate, compare, export, convert, split, info)
}
"""The help of each command, by its name."""
