// Scores rows by a model that rankrls exported as JSON; needs no packages.
//
//   import { score } from "./score.mjs";
//   const model = JSON.parse(readFileSync("model.json", "utf8"));
//   const scores = score(model, [{ brand: "Acme", price: 9.5 }, { brand: null, price: 12 }]);
//
// A row is an object of cells by columns, or an array of numbers. null, undefined and NaN are missing cells. Higher
// scores are better.

const STEPS = {
  multiply: (value, by) => value * by,
  add: (value, by) => value + by,
  pow: (value, by) => value ** by,
  exp: Math.exp,
  tanh: Math.tanh,
};
const sum = (values) => values.reduce((total, value) => total + value, 0);
const MEASURES = {
  product: (x, z) => sum(x.map((a, i) => a * z[i])),
  square: (x, z) => sum(x.map((a, i) => (a - z[i]) ** 2)),
  manhattan: (x, z) => sum(x.map((a, i) => Math.abs(a - z[i]))),
};

/** The scores of some rows. */
export function score(model, rows) {
  if (model.format !== "rankrls-scorer" || model.version !== 1) {
    throw new Error("This is not a model that this scorer knows.");
  }
  return rows.map((row) => functionOf(model.function, scaled(model, features(model, row))) + model.offset);
}

/** The features of a row, before they are scaled. */
export function features(model, row) {
  const { encoder, query, columns } = model;
  if (encoder !== null) {
    return encoder.flatMap((spec) => {
      if (!(spec.column in row)) throw new Error(`The row has no column ${JSON.stringify(spec.column)}.`);
      return ENCODERS[spec.kind](spec, cellOf(model, row[spec.column]), row[query]);
    });
  }
  const values = Array.isArray(row) ? row : columns.map((name) => row[name]);
  if (!values.every(Number.isFinite)) throw new Error(`Numbers must be finite; got ${values}.`);
  return values;
}

/** A cell without blanks around it; null if it is missing. */
function cellOf(model, value) {
  if (typeof value === "string") {
    const text = value.trim();
    return model.missing.includes(text.toLowerCase()) ? null : text;
  }
  return value === undefined || Number.isNaN(value) ? null : value;
}

function scaled(model, x) {
  for (const { logarithm, centre, spread } of model.scaling) {
    x = (logarithm ? x.map(Math.asinh) : x).map((value, j) => (value - centre[j]) / spread[j]);
  }
  return x;
}

function functionOf({ expansions, features, thresholds, weights }, x) {
  if (expansions) return sum(expansions.map((part) => expansion(part, x)));
  if (!thresholds) return MEASURES.product(weights, x);
  return sum(weights.map((weight, t) => (x[features[t]] > thresholds[t] ? weight : 0)));
}

function expansion({ measure, steps, features, items, coefficients }, x) {
  const own = features === null ? x : features.map((j) => x[j]);
  const kernel = (item) =>
    steps.reduce((value, [operation, number]) => STEPS[operation](value, number), MEASURES[measure](own, item));
  return sum(items.map((item, k) => coefficients[k] * kernel(item)));
}

/** A finite number or a truth value as a number; NaN for anything else. */
function valueOf(cell) {
  const text = String(cell).toLowerCase();
  if (text === "true" || text === "false") return text === "true" ? 1 : 0;
  const number = typeof cell === "string" && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(text) ? Number(cell) : cell;
  return Number.isFinite(number) ? number : NaN;
}

/** The value of a number as it would be written, or of a truth value; NaN for other texts. */
function spelledValue(word) {
  const value = valueOf(word);
  return /^(true|false)$/i.test(word) || word === String(value) || word === `${value}.0` ? value : NaN;
}

function numberFeatures({ column, fill, flag }, cell) {
  const value = valueOf(cell === null ? fill : cell);
  if (Number.isNaN(value)) throw new Error(`The cell ${cell} of column ${JSON.stringify(column)} is not a finite number.`);
  return flag ? [value, cell === null ? 1 : 0] : [value];
}

/** Days since 1970 of a date, at UTC. */
function daysOf(cell, column) {
  const text = cell instanceof Date ? cell.toISOString() : String(cell);
  const ordered = /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})$/.exec(text)?.slice(1);
  const dotted = /^(\d{1,2})\.(\d{1,2})\.(\d{4})$/.exec(text)?.slice(1).reverse();
  const time = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?(?:Z|([+-])(\d\d):?(\d\d))?$/.exec(text);
  let milliseconds = NaN;
  if (ordered ?? dotted) {
    const [year, month, day] = (ordered ?? dotted).map(Number);
    milliseconds = Date.UTC(year, month - 1, day);
    if (new Date(milliseconds).getUTCDate() !== day) milliseconds = NaN;
  } else if (time) {
    const [year, month, day, hour, minute, second, part] = time.slice(1, 8).map((each) => Number(each ?? 0));
    const shift = (Number(time[9] ?? 0) * 60 + Number(time[10] ?? 0)) * (time[8] === "-" ? -1 : 1);
    milliseconds = Date.UTC(year, month - 1, day, hour, minute - shift, second) + 1000 * part;
  }
  if (Number.isNaN(milliseconds)) throw new Error(`The cell ${text} of column ${JSON.stringify(column)} is not a date.`);
  return milliseconds / 86400000;
}

function dateFeatures(spec, cell) {
  const age = cell === null ? null : spec.origin - daysOf(cell, spec.column);
  const waves = spec.periods.flatMap((period) => {
    const angle = ((2 * Math.PI) / period) * age;
    return age === null ? [0, 0] : [Math.sin(angle), Math.cos(angle)];
  });
  return [...numberFeatures(spec, age), ...waves];
}

function categoryFeatures({ by_value, places, others, width }, cell) {
  let wanted = cell === null ? null : String(cell);
  if (by_value && wanted !== null) wanted = spelledValue(wanted);
  const [, place] = places.find(([key]) => key === wanted) ?? [null, others];
  return Array.from({ length: width }, (_, k) => (k === place ? 1 : 0));
}

const wordsOf = (text) => String(text ?? "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

function textFeatures({ texts }, cell, query) {
  return texts.flatMap((part) => textPart(part, wordsOf(cell), wordsOf(query)));
}

function textPart(part, text, asked) {
  if (part.kind === "matches") return [[...new Set(text)].filter((word) => asked.includes(word)).length];
  if (part.kind === "word") return part.words.map((word) => (text.includes(word) ? 1 : 0));
  if (part.kind === "tfidf") return weightsOf(part, text);
  return [MEASURES.product(weightsOf(part, text), weightsOf(part, asked))];
}

function weightsOf({ words, idf }, text) {
  const counts = words.map((word, k) => text.filter((each) => each === word).length * idf[k]);
  const norm = Math.hypot(...counts);
  return norm > 0 ? counts.map((count) => count / norm) : counts;
}

const ENCODERS = { number: numberFeatures, date: dateFeatures, category: categoryFeatures, text: textFeatures };
