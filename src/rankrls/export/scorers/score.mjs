// Scores rows by a model that rankrls exported as JSON; needs no packages.
//
//   import { Scorer } from "./score.mjs";
//   const model = JSON.parse(readFileSync("model.json", "utf8"));
//   const scores = new Scorer(model).score([{ brand: "Acme", price: 9.5 }, { brand: null, price: 12 }]);
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
  return new Scorer(model).score(rows);
}

/** A model that is ready to score. */
export class Scorer {
  constructor(model) {
    if (model.format !== "rankrls-scorer" || model.version !== 1) {
      throw new Error("This is not a model that this scorer knows.");
    }
    this.model = model;
    this.columns = (model.encoder ?? []).map((spec) => [spec.column, ENCODERS[spec.kind](spec)]);
  }

  score(rows) {
    return rows.map((row) => this.function(this.scaled(this.features(row))) + this.model.offset);
  }

  /** The features of a row, before they are scaled. */
  features(row) {
    const { encoder, query, columns } = this.model;
    if (encoder !== null) {
      return this.columns.flatMap(([column, encode]) => {
        if (!(column in row)) throw new Error(`The row has no column ${JSON.stringify(column)}.`);
        return encode(this.cell(row[column]), row[query]);
      });
    }
    const values = Array.isArray(row) ? row : columns.map((name) => row[name]);
    if (!values.every(Number.isFinite)) throw new Error(`Numbers must be finite; got ${values}.`);
    return values;
  }

  scaled(x) {
    for (const { logarithm, centre, spread } of this.model.scaling) {
      x = (logarithm ? x.map(Math.asinh) : x).map((value, j) => (value - centre[j]) / spread[j]);
    }
    return x;
  }

  function(x) {
    const { expansions, features, thresholds, weights } = this.model.function;
    if (expansions) return sum(expansions.map((part) => expansion(part, x)));
    if (!thresholds) return sum(weights.map((weight, j) => weight * x[j]));
    return sum(weights.map((weight, t) => (x[features[t]] > thresholds[t] ? weight : 0)));
  }

  /** A cell without blanks around it; null if it is missing. */
  cell(value) {
    if (typeof value === "string") {
      const text = value.trim();
      return this.model.missing.includes(text.toLowerCase()) ? null : text;
    }
    return value === undefined || Number.isNaN(value) ? null : value;
  }
}

function expansion({ measure, steps, features, items, coefficients }, x) {
  const own = features === null ? x : features.map((j) => x[j]);
  const kernel = (item) =>
    steps.reduce((value, [operation, number]) => STEPS[operation](value, number), MEASURES[measure](own, item));
  return sum(items.map((item, k) => coefficients[k] * kernel(item)));
}

/** A number or a truth value as a number; null for anything else. */
function valueOf(cell) {
  if (cell === true || cell === "true") return 1;
  if (cell === false || cell === "false") return 0;
  const number = typeof cell === "string" && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(cell) ? Number(cell) : cell;
  return Number.isFinite(number) ? number : null;
}

/** A cell as a text: whole numbers without a point, truth values in lower case. */
const spelled = (cell) => String(cell);

/** The value of a number as it would be written, or of a truth value; null of other texts. */
function spelledValue(word) {
  const lower = word.toLowerCase();
  if (lower === "true" || lower === "false") return valueOf(lower);
  const value = valueOf(word);
  return value !== null && (word === String(value) || word === `${value}.0`) ? value : null;
}

function numberEncoder({ column, fill, flag }) {
  return (cell) => {
    const value = cell === null ? fill : valueOf(typeof cell === "string" ? cell.toLowerCase() : cell);
    if (value === null) throw new Error(`The cell ${cell} of column ${JSON.stringify(column)} is not a finite number.`);
    return flag ? [value, cell === null ? 1 : 0] : [value];
  };
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

function dateEncoder(spec) {
  const number = numberEncoder(spec);
  return (cell) => {
    const age = cell === null ? null : spec.origin - daysOf(cell, spec.column);
    const waves = spec.periods.flatMap((period) => {
      const angle = ((2 * Math.PI) / period) * age;
      return age === null ? [0, 0] : [Math.sin(angle), Math.cos(angle)];
    });
    return [...number(age), ...waves];
  };
}

function categoryEncoder({ known, rare }) {
  const places = new Map([...known.map((word, k) => [word, k]), ...rare.map((word) => [word, known.length])]);
  const words = [...places.keys()].filter((word) => word !== null);
  let values = new Map(words.map((word) => [spelledValue(word), places.get(word)]));
  if (values.has(null) || values.size !== words.length) values = new Map();
  const width = known.length + (rare.length > 0 ? 1 : 0);
  return (cell) => {
    const word = cell === null ? null : spelled(cell);
    let place = places.get(word);
    if (place === undefined && word !== null) place = values.get(spelledValue(word));
    return Array.from({ length: width }, (_, k) => (k === (place ?? known.length) ? 1 : 0));
  };
}

const wordsOf = (text) => String(text ?? "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

function textPart({ kind, words, idf }) {
  if (kind === "matches") {
    return (text, query) => [[...new Set(text)].filter((word) => query.includes(word)).length];
  }
  if (kind === "word") return (text) => words.map((word) => (text.includes(word) ? 1 : 0));
  const weights = (text) => {
    const counts = words.map((word, k) => text.filter((each) => each === word).length * idf[k]);
    const norm = Math.hypot(...counts);
    return norm > 0 ? counts.map((count) => count / norm) : counts;
  };
  if (kind === "tfidf") return weights;
  return (text, query) => [MEASURES.product(weights(text), weights(query))];
}

function textEncoder({ texts }) {
  const parts = texts.map(textPart);
  return (cell, query) => parts.flatMap((part) => part(wordsOf(cell), wordsOf(query)));
}

const ENCODERS = { number: numberEncoder, date: dateEncoder, category: categoryEncoder, text: textEncoder };
