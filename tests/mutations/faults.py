"""Faults that tests must notice: for each the text of a module before and after, and the tests.

Each is one that a programmer makes: a sign, an index, an argument that is not passed on, a branch that is skipped, a
column in the place of another. If a module changes, change the text here too, so that the fault stays the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A change of a module, and what must notice it.

    Attributes
    ----------
    module : str
        File below ``src/rankrls``.
    before, after : str
        Text that the module holds exactly once, and what replaces it.
    tests : tuple of str
        Files or functions of tests, one of which must fail.
    """

    module: str
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def package(self) -> str:
        """The first part of the module's name."""
        return self.module.split("/")[0].removesuffix(".py")

    def __str__(self) -> str:
        before = " ".join(self.before.split())
        after = " ".join(self.after.split())
        return f"{self.module}: {before}  ->  {after or 'nothing'}"


def _planted(module: str, tests: str, *changes: tuple[str, str]) -> Iterator[Fault]:
    """Faults of one module with the same tests: files, folders or functions below ``tests``."""
    files = tuple(f"tests/{name}" for name in tests.split())
    for before, after in changes:
        yield Fault(module, before, after, files)


FAULTS = [
    # selection
    *_planted(
        "selection/search.py",
        "selection/test_rules.py",
        ("goodness[top] - error[top], scale[top]", "goodness[top] - 2.0 * error[top], scale[top]"),
        ("return value >= level - EQUAL * scale", "return value >= level"),
        ("return new > old + EQUAL * scale", "return new > old"),
    ),
    *_planted(
        "selection/search.py",
        "selection/test_rules.py",
        ("self.best_index = first + k", "self.best_index = k"),
    ),
    *_planted(
        "_curves.py",
        "selection/test_rules.py",
        (
            "np.nan_to_num(mean_of_judged(np.abs(self.per_block)))",
            "np.nan_to_num(np.abs(self.per_block)).mean(axis=0)",
        ),
    ),
    *_planted(
        "selection/search.py",
        "selection/test_search.py::test_every_combination_is_tried_and_the_best_is_refitted",
        (
            "        if not is_better(goodness[top], self._top, curve.size[top]):\n            return False\n",
            "",
        ),
    ),
    *_planted(
        "selection/search.py",
        "selection/test_search.py::test_edges_of_the_grids_of_a_kernel "
        "selection/test_search.py::test_an_end_is_open_if_its_neighbour_is_not_as_good",
        ("value in (min(tried), max(tried))", "value in (min(tried),)"),
        (
            "(len(goodness) - 1, len(goodness) - 2)) if len(goodness) > 2",
            "(len(goodness) - 1, 0)) if len(goodness) > 2",
        ),
    ),
    *_planted(
        "_curves.py",
        "test_curves.py",
        ("right[weight == 0.0] = np.nan", "pass"),
        ("np.sqrt((weight**2) @ squares)", "np.sqrt(weight @ squares)"),
    ),
    *_planted(
        "_curves.py",
        "test_curves.py",
        ("np.sqrt(2.0) * mean_and_error(values)[1]", "mean_and_error(values)[1]"),
        ("* len(margins) / (len(margins) + 2.0)", ""),
        ("return ratio(np.asarray(total, dtype=np.float64), times)", "return np.asarray(total, dtype=np.float64)"),
    ),
    *_planted(
        "selection/folds.py",
        "selection/test_folds.py",
        ("table.weight[test] / chance[test]", "table.weight[test]"),
        ("np.bincount(component, data.preferences.strength != 0.0)", "np.bincount(component)"),
        ("(inside * (inside - 1.0)).sum(axis=1)", "(inside * inside).sum(axis=1)"),
    ),
    *_planted(
        "selection/folds.py",
        "selection/test_search.py::test_folds_that_hold_a_query_out_more_than_once_are_refitted",
        ("len(np.unique(held)) == len(held) and all(", "all("),
    ),
    *_planted(
        "selection/folds.py",
        "selection/test_search.py::test_given_folds_number_the_rows_of_weight_zero_too",
        ("number_left = np.cumsum(data.kept) - 1", "number_left = np.arange(m)"),
    ),
    *_planted(
        "selection/plans.py",
        "model_selection/test_leave_pair_out.py selection/test_plans.py",
        ("1.0 - found.interval[::-1]", "1.0 - found.interval"),
    ),
    *_planted(
        "selection/plans.py",
        "selection/test_plans.py::test_held_out_scores_of_refits_that_differ_by_rounding_are_equal",
        ("        scores[rows] = held\n", ""),
    ),
    *_planted(
        "selection/plans.py",
        "selection/test_plans.py::test_a_split_trains_on_no_row_of_the_queries_that_it_watches "
        "selection/test_plans.py::test_a_split_trains_on_no_preference_of_the_groups_that_it_watches",
        ("np.delete(observations, block)", "np.delete(observations, block[:1])"),
    ),
    *_planted(
        "selection/plans.py",
        "selection/test_search.py::test_validation_data selection/test_optimism.py",
        ("    folds: tuple[()] = ()\n", ""),
    ),
    *_planted(
        "selection/plans.py",
        "models/test_cg_rankrls.py::test_the_held_out_fold_follows_from_the_ids_of_queries",
        ("np.sort(by_id[test]) for test in", "np.sort(test) for test in"),
    ),
    *_planted(
        "selection/plans.py",
        "models/test_cg_rankrls.py::test_a_choice_on_few_units_is_one_half_on_noise",
        ("self._n_judged() < ENOUGH_UNITS", "self._n_judged() < 1"),
    ),
    *_planted(
        "selection/plans.py",
        "model_selection/test_leave_pair_out.py",
        ("data.weights[i] * data.weights[j]", "data.weights[i] + data.weights[j]"),
    ),
    *_planted(
        "selection/plans.py",
        "selection/test_folds.py::test_a_negative_strength_is_a_preference_for_the_other_item",
        ("np.sign(table.strength[rows]), i", "np.ones(len(rows)), i"),
    ),
    *_planted(
        "selection/optimism.py",
        "selection/test_optimism.py",
        ("left = (drawn == 0.0)", "left = (drawn > 0.0)"),
        ("return _TAUGHT * bias if mutual else bias", "return bias"),
        ("pieces[k].gain for k in order", "0.0 for k in order"),
    ),
    *_planted(
        "selection/optimism.py",
        "models/test_auto_rankrls.py",
        ("apart = self.values[:, self.own[[top]]] - self.values[:, self.own]", "apart = self.values[:, self.own]"),
    ),
    *_planted(
        "selection/optimism.py",
        "selection/test_optimism.py",
        ("values *= 1.0 if found[0].greater_is_better else -1.0", "values *= 1.0"),
        ("means if fitted[0].greater_is_better else -means,", "means,"),
    ),
    *_planted(
        "_curves.py",
        "selection/test_least_squares.py",
        ("of_targets[:, :, np.concatenate(folds)] = held", "of_targets[:, :, np.sort(np.concatenate(folds))] = held"),
    ),
    *_planted(
        "selection/least_squares.py",
        "selection/test_least_squares.py",
        ("return max(smoothers, key", "return min(smoothers, key"),
    ),
    *_planted(
        "selection/least_squares.py",
        "selection/test_folds.py::test_win_probabilities_follow_from_held_out_margins_of_the_chosen_alpha "
        "selection/test_search.py::test_leave_query_out_equals_refits",
        ("chosen = [[(rows, of_all[:, k : k + 1])", "chosen = [[(rows, of_all[:, :1])"),
    ),
    *_planted(
        "selection/least_squares.py",
        "selection/test_least_squares.py",
        ("out |= alphas < _UNRESOLVED * smoother.top", "out |= alphas < _UNRESOLVED"),
    ),
    *_planted(
        "selection/krylov.py",
        "models/test_cg_rankrls.py",
        ("self.iteration - self._improved < self.patience", "self.iteration - self._improved <= self.patience"),
        ("for _ in range(row + 1):", "for _ in range(row):"),
        ("return self._columns if self.every_iteration else self._columns[-1:]", "return self._columns"),
        ("every = np.flatnonzero(data.kept)", "every = np.arange(data.n_rows)"),
    ),
    *_planted(
        "selection/basis.py",
        "models/test_sparse_rankrls.py",
        ("(np.cumsum(kept) - 1)[numbers].astype(np.intp)", "numbers.astype(np.intp)"),
    ),
    # metrics
    *_planted(
        "metrics/_loops.py",
        "metrics",
        ("reached *= 1.0 - inside", "reached -= inside"),
        ("inside * hits / np.float64(stop)", "inside * hits / np.float64(start + one)"),
        ("result += weight * (inside / size)", "result += weight * inside"),
        ("z += w[a + j] * (own[j] >= score)", "z += w[a + j] * (own[j] > score)"),
        ("out[1, q] += w[i] * level", "out[1, q] += w[i]"),
        ("_sweep(scores, order, label, w, True, weak)", "_sweep(scores, order, label, w, False, weak)"),
    ),
    *_planted(
        "metrics/_table.py",
        "metrics",
        ('.discount == "letor" else positions + 1.0', '.discount == "letor" else positions + 2.0'),
        ('"positive": np.maximum(y, 0.0)', '"positive": y'),
        ("    counts[..., 2] *= same\n", ""),
        ("np.minimum(found, chunk.depth)", "found"),
        ("chunk.walk(SUM, relevant, depths=found)", "chunk.walk(SUM, relevant)"),
        ("- 1.0) / np.exp2(high)", "- 1.0) / (np.exp2(high) - 1.0)"),
        ("    differ[differ <= 1e-13 * ordered] = 0.0", "    pass"),
        ("np.where(lengths > 1, total**2 - squares, 0.0)", "np.where(lengths > 1, total**2, 0.0)"),
        ("weights=None if self.weights is None else self.weights[order],", "weights=self.weights,"),
        ('"lightgbm": {"empty": 1.0, "denominator": "reachable"}', '"lightgbm": {"empty": 1.0}'),
    ),
    *_planted(
        "metrics/_measure.py",
        "metrics",
        ("weights = None if weights is None else weights[order]", "weights = weights"),
        (".astype(np.float32).astype(np.float64)", ""),
        ("y, layout.starts, weights=weights)", "y, layout.starts)"),
    ),
    *_planted(
        "metrics/_measure.py",
        "metrics",
        ("count * (count - 1.0)", "count * count"),
    ),
    *_planted(
        "metrics/_measure.py",
        "metrics models/test_partly_labelled.py",
        ("len(labels), -1)).all(axis=1)", "len(labels), -1)).any(axis=1)"),
        ("None if weights is None else weights[known]", "None if weights is None else weights[: known.sum()]"),
    ),
    *_planted(
        "metrics/_measure.py",
        "metrics",
        ("np.where(sign == 0.0, 0.0, weight)", "weight"),
        ("docno=docno, per_query=per_query)", "docno=None, per_query=per_query)"),
    ),
    *_planted(
        "metrics/_measure.py",
        "models/test_routing.py models/test_partly_labelled.py",
        ("return value if self.greater_is_better else -value", "return value"),
        ("weights = sample_weight if self.definition.over_pairs else None", "weights = None"),
    ),
    *_planted(
        "metrics/_scorer.py",
        "export/test_engines.py::test_the_model_that_a_search_chose",
        ("        return unwrapped(model.best_estimator_)\n", "        return [], model.best_estimator_\n"),
    ),
    # clicks
    *_planted(
        "clicks.py",
        "test_clicks.py",
        ("return rates / theta, n * theta, found", "return rates / theta, n / theta, found"),
        ("weights = n * theta[codes] ** 2", "weights = n * theta[codes] ** 4"),
        ("group = np.cumsum(shown >= ENOUGH) - 1", "group = np.arange(len(shown))"),
        ("ddof=1) * np.sqrt(drawn / queries)", "ddof=1)"),
        ("np.bincount(codes, n * g * g, len(theta))", "np.bincount(codes, n * g, len(theta))"),
        ("weights = n[rows] * times[rows]", "weights = n[rows]"),
        ("explained > CONFOUNDED", "explained > 1.0 - CONFOUNDED"),
        ("query_layout(qid, m).codes_by_id", "query_layout(qid, m).codes"),
    ),
    # preprocessing
    *_planted(
        "preprocessing/_scalers.py",
        "preprocessing/test_scalers.py",
        ("above = query - query.min(axis=0)", "above = query"),
        ("out[rows] = self._scaled(X[rows]", "out[rows] = self._scaled(X[: len(rows)]"),
        ("        centred -= centred.mean(axis=0)\n", ""),
        ("scaler.fit(values, sample_weight=sample_weight)", "scaler.fit(values)"),
        ('if "scaler_" not in vars(self):', "if True:"),
    ),
    *_planted(
        "preprocessing/_table_encoder.py",
        "preprocessing",
        ("values = self.origin - values if self.kind", "values = values - self.origin if self.kind"),
        ("angle = 2.0 * np.pi / PERIODS[period] * values", "angle = np.pi / PERIODS[period] * values"),
        ("if totals[word] >= least]", "if totals[word] > least]"),
        ("frequent = frequent[: most - 1]", "frequent = frequent[:most]"),
        ("out.data *= self.idf[out.indices]", "pass"),
        ("return (self.counts(texts) > 0.0).astype(np.float64)", "return self.counts(texts)"),
        ("            parts.append(missing)\n", "            parts.append(~missing)\n"),
        ("self._key(word) not in self.places)", "word not in self.known)"),
        ("if span >= 2 * length]", "if span >= length]"),
    ),
    *_planted(
        "preprocessing/_table_encoder.py",
        "preprocessing",
        ("tzinfo=found.tzinfo and UTC", "tzinfo=found.tzinfo"),
        ("np.nan_to_num(column.values, nan=-np.inf)", "column.values"),
        ("pc.is_in(pc.utf8_lower(trimmed), ", "pc.is_in(trimmed, "),
    ),
    *_planted(
        "preprocessing/_table_encoder.py",
        "preprocessing",
        ('and (use.kind != "query text" or texts)]', "]"),
        ("for encoding in found if not isinstance(encoding, Numbers))", "for encoding in found)"),
        ('{"missing": int(column.missing.sum())}', '{"missing": 0}'),
    ),
    # io
    *_planted(
        "io/_text.py",
        "io/test_letor.py io/test_tables.py",
        ("0|-?[1-9][0-9]{0,18}", "0|-?[1-9][0-9]{0,16}"),
        ("(EOFError, gzip.BadGzipFile, zlib.error)", "(gzip.BadGzipFile, zlib.error)"),
    ),
    *_planted(
        "io/_text.py",
        "io/test_letor.py::test_ids_of_all_blocks_are_texts_if_one_is_not_a_number",
        ("if all(part.dtype == np.int64 for part in parts):", "if any(part.dtype == np.int64 for part in parts):"),
    ),
    *_planted(
        "io/rows.py",
        "io/test_judgements.py",
        ("label_varies(table.y[known], pairs)[pairs.codes]", "(pairs.counts > 1)[pairs.codes]"),
        ("zip(items[rows], rows, strict=True)}", "zip(items[rows][::-1], rows[::-1], strict=True)}"),
        ("known = np.flatnonzero(~np.isnan(table.y))", "known = np.arange(len(table.y))"),
    ),
    *_planted(
        "io/columns.py",
        "io/test_tables.py",
        ('word.replace("[", "[[]")', "word"),
        ("and not (roles.features is None and _INDEX.fullmatch(n))", ""),
    ),
    *_planted(
        "io/columns.py",
        "io/test_dataset.py::test_labels_that_are_not_there",
        ('may_be_empty=("label",) if', 'may_be_empty=("label", "weight") if'),
    ),
    *_planted(
        "io/_letor_loop.py",
        "io/test_letor.py",
        ("unsorted = unsorted or number <= before", "unsorted = unsorted or number < before"),
        ("if number < least or number > largest:", "if number > largest:"),
    ),
    *_planted(
        "io/_letor_loop.py",
        "io/test_letor_loop.py",
        ("_EXACT = np.uint64(1 << 53)", "_EXACT = np.uint64(1 << 60)"),
        ("_VALUE_DIGITS = np.uint64(19)", "_VALUE_DIGITS = np.uint64(21)"),
    ),
    *_planted(
        "io/_letor.py",
        "io/test_letor.py io/test_writing.py",
        ("ends.append(block.ends + before)", "ends.append(block.ends)"),
        ("good = np.abs(read) <", "good = read <"),
        ("columns = max(largest + 1 - first_feature, 0)", "columns = max(largest, 0)"),
        ("bad += [] if (block.qid is not None) == with_qid else [block.start]", "bad += []"),
        ("line=lines + number + 1", "line=number + 1"),
    ),
    *_planted(
        "io/writing.py",
        "io/test_writing.py io/test_tables.py",
        ("part.indptr, part.indices + first_id, part.data", "part.indptr, part.indices + 1, part.data"),
        ("values = np.asarray(values, np.float64)", "pass"),
        ("mtime=0)", ")"),
    ),
    *_planted(
        "io/preferences.py",
        "io/test_votes.py io/test_preferences.py",
        ("np.where((choice[kept] < 0)[:, None]", "np.where((choice[kept] > 0)[:, None]"),
        ("lead = np.abs(choice) * found", "lead = choice * found"),
        ("if counts[text] == 1}", "}"),
        ("kept = pairs[:, 0] != pairs[:, 1]", "kept = pairs[:, 0] >= 0"),
        ("columns.get(word, _CHOICES.get(small, np.nan))", "_CHOICES.get(small, columns.get(word, np.nan))"),
    ),
    *_planted(
        "io/tables.py",
        "io/test_tables.py io/test_dataset.py",
        ("bad |= out < 0", "pass"),
        ("np.where(np.abs(found) >= _EXACT, np.inf, found) if", "found if"),
        ("cells = cells.cast(pa.string())  # rounds once", "cells = cells.cast(pa.float64())  # rounds once"),
    ),
    *_planted(
        "io/dataset.py",
        "io/test_dataset.py",
        ("queries.last = None  # queries", "pass  # queries"),
        ("n_queries += 0 if queries is None else len(begins)", "n_queries = len(begins)"),
        ("n_rows + size > most:", "n_rows + size >= most:"),
        ("if os.stat(self.path).st_mtime_ns != self.time:", "if False:"),
        ("row += size\n", "pass\n"),
    ),
    *_planted(
        "io/dataset.py",
        "io/test_dataset.py cli/test_shards.py",
        ("min(each.first_feature or 0 for each", "max(each.first_feature or 0 for each"),
    ),
    *_planted(
        "io/formats.py",
        "io/test_writing.py io/test_tables.py",
        ("text.replace('\"', '\"\"')", "text"),
    ),
    *_planted(
        "io/dataset.py",
        "io/test_dataset.py cli/test_shards.py",
        ('most, side="right")', 'most, side="left")'),
        ("in_file + group.num_rows > rows_per_file", "in_file > rows_per_file"),
        ("rows.take(pc.sort_indices(rows[qid]))", "rows"),
    ),
    *_planted(
        "io/reading.py",
        "io/test_dataset.py",
        ("tables[-1].column_names != tables[0].column_names", "False"),
    ),
    *_planted(
        "io/formats.py",
        "io/test_tables.py io/test_dataset.py",
        ("numbers.append(number)", "numbers.append(len(numbers))"),
    ),
    *_planted(
        "_records.py",
        "io/test_tables.py",
        ('feature.get("value", 0.0)', 'feature.get("value")'),
        ("column += [None] * (row - len(column))", "pass"),
    ),
    *_planted(
        "_records.py",
        "test_records.py",
        ('f"{name}."', '""'),
    ),
    # export
    *_planted(
        "export/engines.py",
        "export/test_engines.py export/test_tables.py",
        ("float(weights[other] - weights[family] @ centres[family])", "float(weights[other])"),
        ("centres += spreads * step.centre", "centres += step.centre"),
        ("10.0 ** (1 - math.floor(math.log10(norm)))", "10.0 ** (-1 - math.floor(math.log10(norm)))"),
        ("scores = factor * np", "scores = np"),
        ('centre=term.centre + (term.feature.kind in ("sine", "cosine"))', "centre=term.centre"),
        ("weight=-term.weight, centre=0.0)", "weight=-term.weight)"),
        ("always_one, offset + linear.constant)", "always_one, offset)"),
        ("taken.append(next(name for name in chain([plain], numbered) if name not in taken))", "taken.append(plain)"),
    ),
    *_planted(
        "export/_model.py",
        "export/test_engines.py export/test_json_scorer.py",
        ("Expansion(kernel, kernel.formula, features, items,", "Expansion(kernel, kernel.formula, None, items,"),
        ("step.data_min_ - step.feature_range[0] / step.scale_", "step.data_min_"),
        ("step.mean_ if step.with_mean else None", "step.mean_"),
    ),
    *_planted(
        "export/sql.py",
        "export/test_sql.py",
        ("CASE WHEN {value} > {limit} THEN", "CASE WHEN {value} >= {limit} THEN"),
        ('return f"COALESCE({wave}, 0e0)"', "return wave"),
        ("- 2440587.5e0)", "- 2440588e0)"),
    ),
    *_planted(
        "export/onnx_graph.py",
        "export/test_engines.py",
        ("graph.constant(float(offset or 0.0))", "graph.constant(0.0)"),
        ('graph.add("Sum", known, *parts)', 'graph.add("Sum", *parts)'),
        ("    items = items - centre\n", ""),
    ),
    *_planted(
        "export/engines.py",
        "export/test_engines.py export/test_tables.py",
        ('_function(f"max(0,sub(0,{known}))")', '_function(f"max(0,{known})")'),
        ("scaled = (term.centre, term.spread) != (0.0, 1.0)", "scaled = term.centre != 0.0"),
        ("defaultValue=feature.fill)", "defaultValue=0.0)"),
    ),
    *_planted(
        "export/engines.py",
        "export/test_engines.py export/test_tables.py",
        ("constant -= term.weight * term.centre", "constant += term.weight * term.centre"),
        ("                constant += term.weight\n", ""),
        ("sums = [(1.0, 1.0)]", "sums = [(0.0, 1.0)]"),
        ('"missing": 1.0}.get(kind', '"missing": 0.0}.get(kind'),
    ),
    *_planted(
        "export/json_scorer.py",
        "export/test_json_scorer.py",
        ("missing = [word.lower() for", "missing = [word for"),
        ('"weights": weights[:, check_target(target, weights.shape[1])]', '"weights": weights[:, 0]'),
    ),
    *_planted(
        "export/scorers/score.py",
        "export/test_json_scorer.py",
        ("if x[j] > threshold)", "if x[j] >= threshold)"),
        ("found if found.tzinfo else found.replace(tzinfo=UTC)", "found.replace(tzinfo=UTC)"),
    ),
    # models
    *_planted(
        "models/spec.py",
        "models/test_positive.py selection/test_search.py::test_gamma_none_may_be_one_of_several",
        ("signs[known[feature]] = sign", "signs[known[feature]] = 1"),
        ('known = {**values, "gamma": kernel.gamma}', "known = values"),
        ("in enumerate(features.names)}", "in enumerate(features.names, 1)}"),
    ),
    *_planted(
        "models/fitted.py",
        "models/test_rankrls.py selection/test_search.py::test_precomputed_kernels_are_cut_on_both_sides",
        ("scorer = scorer.over(data.kept)", "pass"),
    ),
    *_planted(
        "models/ranker.py",
        "models/test_pairs.py selection/test_folds.py models/test_fitted.py",
        ("            del known[name]\n", "            pass\n"),
    ),
    *_planted(
        "_comparisons.py",
        "selection/test_folds.py",
        ("held = np.isfinite(margins)", "held = np.flatnonzero(np.isfinite(margins))[:1]"),
    ),
    *_planted(
        "models/incremental.py",
        "models/test_incremental.py",
        (
            "    for k, old in enumerate(state.equations):",
            "    for k, old in enumerate(state.equations[1:], 1):",
        ),
        ("else [len(state.queries)]", "else [0]"),
        ("if settings[name] != value:", "if name not in settings:"),
    ),
    *_planted(
        "models/intake.py",
        "test_clicks.py",
        ("weights = factors if weights is None else weights * factors", "weights = factors"),
    ),
    *_planted(
        "models/intake.py",
        "models/test_pair_input.py models/test_pairs.py",
        ("given = given.take(kept)", "pass"),
        ('groups=query_layout(groups, given.n_rows, name="groups").codes', "groups=np.arange(given.n_rows)"),
    ),
    *_planted(
        "models/intake.py",
        "selection/test_search.py::test_validation_data selection/test_search.py::test_any_measure",
        ("items = replace(items, X=items.X[:, data.kept])", "items = replace(items, X=items.X[:, : len(data.Y)])"),
        ("if measure is None or data.has_qid or callable", "if measure is None or callable"),
    ),
    *_planted(
        "models/ranker.py",
        "models/test_rankrls.py models/test_sparse_rankrls.py models/test_intake.py",
        ("tied(scores.reshape(len(scores), -1), query_layout(qid, len(scores)))", "scores.reshape(len(scores), -1)"),
        ('columns = known.get("basis_indices_") if', "columns = None if"),
        ("given, qid=qid, sample_weight=sample_weight) for own", "given, qid=qid) for own"),
    ),
    *_planted(
        "models/auto_rankrls.py",
        "models/test_auto_rankrls.py",
        ('weights = {} if scale == "ranks" else {"sample_weight": data.item_weights}', "weights = {}"),
        ("results.best_score - (bias if results.greater_is_better else -bias)", "results.best_score - bias"),
        ("sum(len(one.results.rows) for one in tried[:k]) + results.best_index", "results.best_index"),
        ("-round(one.goodness, _DIGITS)", "round(one.goodness, _DIGITS)"),
        ("np.median(data.query_sizes) > 2", "np.median(data.query_sizes) > 0"),
    ),
    *_planted(
        "models/auto_rankrls.py",
        "models/test_boosted.py",
        ("[np.sort(number[fold]) for fold in held_out]", "[np.sort(fold) for fold in held_out]"),
        ("mean[rows, 0, 0] = np.mean(scores, axis=0)", "mean[rows, 0, 0] = scores[0]"),
        ("np.array([1.0 - weight, weight]) / spreads", "np.array([weight, 1.0 - weight]) / spreads"),
    ),
    *_planted(
        "models/co_regularized.py",
        "models/test_co_rankrls.py",
        ("weights[features] += select_features", "weights[features] = select_features"),
        ("tuple(weight / scale for weight in _AGREEMENTS)", "tuple(weight * scale for weight in _AGREEMENTS)"),
        ("weights=all_items.weights)", ")"),
    ),
    *_planted(
        "models/co_regularized.py",
        "models/test_view_features.py models/test_co_ranking_pursuit.py",
        ('known["view_coef_"].mean(axis=0)', 'known["view_coef_"].sum(axis=0)'),
        ("[self._terms_[view]]", "[self._terms_[0]]"),
    ),
    *_planted(
        "models/conditional.py",
        "models/test_conditional.py",
        ("return scores + self.intercept_", "return scores"),
        ("np.average(errors[known], weights=weights[known])", "np.average(errors[known])"),
    ),
    *_planted(
        "learners/pursuit.py",
        "models/test_co_ranking_pursuit.py",
        ("apart = np.delete(np.arange(data.n_rows), rows)", "apart = rows"),
    ),
    *_planted(
        "learners/conditional.py",
        "models/test_conditional.py",
        ("self.without_each_query(float(values[k]))", "self.without_each_query(float(values[0]))"),
        ("            K -= K.mean(axis=0)\n", ""),
    ),
    *_planted(
        "models/cg_rankrls.py",
        "models/test_cg_rankrls.py",
        ("a = a[data.kept]", "a = a[: data.kept.sum()]"),
        ("return np.geomspace(1e-9 * top, 10.0 * top, 21)", "return np.geomspace(1e-9 * top, 1e-3 * top, 21)"),
    ),
    *_planted(
        "models/partly_labelled.py",
        "models/test_unscored_cv.py models/test_co_rankrls.py",
        (
            "query_layout(data.layout.ids[data.layout.codes[rows]], len(rows))",
            "query_layout(data.layout.codes[rows], len(rows))",
        ),
        ("        part.weights,\n", "        None,\n"),
    ),
    *_planted(
        "models/ranksvm.py",
        "models/test_ranksvm_cv.py models/test_ranksvm.py",
        ("None if Cs is None else Cs[::-1]", "Cs"),
        ("data.given_numbers(np.flatnonzero(minimum.degree > 0.0))", "np.flatnonzero(minimum.degree > 0.0)"),
    ),
    *_planted(
        "models/rankboost.py",
        "models/test_rankboost.py",
        ("stumps.features[:rounds]", "stumps.features[: rounds - 1]"),
    ),
    *_planted(
        "models/transductive.py",
        "models/test_transductive.py",
        ("labels = all_items.given_rows(labels)", "labels = data.given_rows(labels)"),
    ),
    *_planted(
        "models/ranking_pursuit.py",
        "models/test_ranking_pursuit.py models/test_ranking_pursuit_cv.py",
        ("path_=replace(path, indices=numbers(path.indices))", "path_=path"),
        ("stages == self.settings.n_basis and", "stages == self.settings.n_basis - 1 and"),
    ),
    *_planted(
        "models/_pipelines.py",
        "inspection/test_selected.py models/test_pipelines.py",
        ('"gain": sign * np.diff(held_out)', '"gain": np.diff(held_out)'),
        ("held_out = path.held_out / path.held_out[0]", "held_out = path.held_out"),
        ("        model.steps[:-1] = head.steps", "        pass"),
    ),
]
