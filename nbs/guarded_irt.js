// guarded_irt with one list, in the browser: the estimates of benchnb.methods.guarded_irt, from
// what tools/demonstration.py stores of a fitted one; a test holds both beside each other.
"use strict";

const logistic = (x) => 1 / (1 + Math.exp(-x));
const logit = (p) => Math.log(p / (1 - p));
const clip = (x, low, high) => Math.min(Math.max(x, low), high);
const sumOf = (values) => values.reduce((total, value) => total + value, 0);
const dot = (a, b) => a.reduce((total, value, i) => total + value * b[i], 0);
const norm = (a) => Math.sqrt(dot(a, a));

// the normal distribution function (scipy's ndtr), by its series
function normalCdf(x) {
  if (Math.abs(x) > 8) return x > 0 ? 1 : 0;
  let term = x, total = x;
  for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(total) && k < 400; k += 2) total += term *= (x * x) / k;
  return 0.5 + (total * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
}

// matrix = lower times its transpose
function cholesky(matrix) {
  const lower = matrix.map((row) => row.map(() => 0));
  for (let i = 0; i < matrix.length; i++)
    for (let j = 0; j <= i; j++) {
      const rest = matrix[i][j] - sumOf(lower[j].slice(0, j).map((value, k) => value * lower[i][k]));
      lower[i][j] = i === j ? Math.sqrt(rest) : rest / lower[j][j];
    }
  return lower;
}

function solveLower(lower, right) {
  const x = [];
  for (let i = 0; i < right.length; i++) x.push((right[i] - sumOf(x.map((value, k) => value * lower[i][k]))) / lower[i][i]);
  return x;
}

function solveUpper(lower, right) { // the transpose of lower
  const x = [...right];
  for (let i = x.length - 1; i >= 0; i--) {
    for (let k = i + 1; k < x.length; k++) x[i] -= lower[k][i] * x[k];
    x[i] /= lower[i][i];
  }
  return x;
}

function newtonStep(gradient, hessian, longest) {
  const lower = cholesky(hessian), step = solveUpper(lower, solveLower(lower, gradient));
  const shorten = Math.max(1, norm(step) / longest);
  return step.map((value) => value / shorten);
}

// maximum a posteriori logistic regression (fit_logistic)
function fitLogistic(design, seen, mean, precision, offset = seen.map(() => 0)) {
  let coefficients = [...mean];
  for (let round = 0; round < 100; round++) {
    const away = coefficients.map((value, i) => value - mean[i]);
    const gradient = precision.map((row) => -dot(row, away)), hessian = precision.map((row) => [...row]);
    design.forEach((x, n) => {
      const p = logistic(dot(x, coefficients) + offset[n]);
      x.forEach((value, i) => {
        gradient[i] += (seen[n] - p) * value;
        x.forEach((other, j) => (hessian[i][j] += p * (1 - p) * value * other));
      });
    });
    const step = newtonStep(gradient, hessian, 2);
    if (!(Math.max(...step.map(Math.abs)) > 1e-9)) break;
    coefficients = coefficients.map((value, i) => value + step[i]);
  }
  return coefficients;
}

// a new model's curve over the items' easiness (predict_from_easiness)
function targetCurve(easiness, items, seen) {
  const design = items.map((item) => [1, easiness[item]]);
  const [level, slope] = fitLogistic(design, seen, [0, 0.7], [[1 / 25, 0], [0, 4]]);
  return easiness.map((x) => logistic(level + slope * x));
}

// how well answers follow predictions, in standard errors (person_fit)
function personFit(predicted, seen) {
  let gap = 0, variance = 0;
  predicted.forEach((value, n) => {
    const p = clip(value, 0.01, 0.99), sure = logit(p);
    gap += (seen[n] - p) * sure;
    variance += p * (1 - p) * sure ** 2;
  });
  return gap / Math.max(Math.sqrt(variance), 0.5);
}

// the difference estimator in Hajek's version (model_assisted_estimate)
function modelAssisted(weights, probabilities, predicted, items, seen) {
  const count = items.length, raw = items.map((item, n) => weights[item] / probabilities[n]), total = sumOf(raw);
  const share = raw.map((value) => value / total), error = items.map((item, n) => seen[n] - predicted[item]);
  const variance = items.map((item) => predicted[item] * (1 - predicted[item]));
  if (seen.some((score) => score !== 0 && score !== 1)) {
    const attained = (dot(share, error.map((e) => e * e)) + 0.01) / (dot(share, variance) + 0.01);
    variance.forEach((value, n) => (variance[n] = value * Math.min(1, attained)));
  }
  const more = Math.max(0, sumOf(share.map((s, n) => s * (error[n] ** 2 - variance[n])))) + 0.02;
  const squared = sumOf(share.map((s, n) => (1 - Math.min(probabilities[n], 1)) * s * s * (variance[n] + more)));
  return { score: dot(weights, predicted) + dot(share, error), se: Math.sqrt((count / Math.max(count - 2, 1)) * squared) };
}

// the curves of one number of dimensions, from the floats of a bank (bank_values in Python)
function readBank(text, dims, items, sources) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)), floats = Float64Array.from(new Float32Array(bytes.buffer));
  let at = 0;
  const block = (count) => floats.subarray(at, (at += count));
  const rows = (count, columns) => Array.from({ length: count }, () => Array.from(block(columns)));
  const params = block(items * (dims + 1)); // of each item: intercept, slopes
  const covariance = block((items * ((dims + 1) * (dims + 2))) / 2); // of these: the upper triangle, row by row
  const theta = rows(sources, dims), [fitted, residual] = rows(2, sources), half = rows(64, dims);
  const noise = [...half, ...half.map((row) => row.map((x) => -x))];
  return { dims, params, covariance, fitted, residual, noise, ...priorOf(theta, dims) };
}

// what log_prior needs of the sources' abilities
function priorOf(theta, dims) {
  const count = theta.length, width = count ** (-1 / (dims + 4)), axes = [...Array(dims).keys()];
  const mean = axes.map((i) => sumOf(theta.map((row) => row[i])) / count);
  const spread = axes.map((i) => axes.map((j) =>
    width ** 2 * (sumOf(theta.map((row) => (row[i] - mean[i]) * (row[j] - mean[j]))) / count + (i === j ? 1e-6 : 0))));
  const root = cholesky(spread), shrink = Math.sqrt(1 - width ** 2);
  const centres = theta.map((row) => solveLower(root, row.map((value) => shrink * value)));
  return { root, centres, logRoot: sumOf(root.map((row, i) => Math.log(row[i]))) };
}

function logAdd(values) {
  const most = Math.max(...values);
  return most + Math.log(sumOf(values.map((value) => Math.exp(value - most))));
}

// log density of a new model's ability (log_prior)
function logPrior(bank, theta) {
  const at = solveLower(bank.root, theta), wide = theta.map((_, i) => (i ? 1.5 : 9));
  const like = logAdd(bank.centres.map((centre) => dot(at, centre) - (dot(at, at) + dot(centre, centre)) / 2));
  const rare = -sumOf(theta.map((value, i) => value ** 2 / wide[i])) / 2 - sumOf(wide.map(Math.log)) / 2;
  return logAdd([Math.log(0.9) + like - Math.log(bank.centres.length) - bank.logRoot, Math.log(0.1) + rare]);
}

// products of two entries of x = 1, theta, as the triangles of covariances have them
function pairProducts(x) {
  return Float64Array.from(x.flatMap((one, i) => x.slice(i).map((other, j) => (j ? 2 : 1) * one * other)));
}

// by what the uncertainty of an item's curve shrinks its logit (attenuation)
function attenuation(bank, item, pairs) {
  let variance = 0;
  for (let k = 0, at = item * pairs.length; k < pairs.length; k++) variance += bank.covariance[at + k] * pairs[k];
  return 1 / Math.sqrt(1 + (Math.PI / 8) * variance);
}

function chanceAt(bank, item, x, pairs) { // P(correct), averaged over the uncertainty (IRT.attenuated)
  let eta = 0;
  for (let k = 0, at = item * x.length; k < x.length; k++) eta += bank.params[at + k] * x[k];
  return logistic(eta * attenuation(bank, item, pairs));
}

// the most likely ability under a plain prior, and the inverse covariance there (posterior_mode);
// start: on the first axis
function posteriorMode(bank, items, seen, start) {
  const axes = [...Array(bank.dims).keys()], precision = axes.map((i) => (i ? 1 : 0.25));
  let theta = axes.map((i) => (i ? 0 : start)), hessian;
  for (let round = 0; round < 30; round++) {
    const x = [1, ...theta], pairs = pairProducts(x), gradient = theta.map((value, i) => -precision[i] * value);
    hessian = axes.map((i) => axes.map((j) => (i === j ? precision[i] : 0)));
    items.forEach((item, n) => {
      const less = attenuation(bank, item, pairs), p = chanceAt(bank, item, x, pairs), weight = p * (1 - p) * less * less;
      const slopes = bank.params.subarray(item * x.length + 1, (item + 1) * x.length);
      slopes.forEach((slope, i) => {
        gradient[i] += slope * (seen[n] - p) * less;
        slopes.forEach((other, j) => (hessian[i][j] += weight * slope * other));
      });
    });
    const step = newtonStep(gradient, hessian, 1);
    theta = theta.map((value, i) => value + step[i]);
    if (Math.max(...step.map(Math.abs)) < 1e-3) break;
  }
  return { theta, hessian };
}

// weighted draws of a model's ability (sample_posterior, importance_sample)
function samplePosterior(bank, items, seen, start) {
  const mode = posteriorMode(bank, items, seen, start), lower = cholesky(mode.hessian);
  const theta = bank.noise.map((row) => solveUpper(lower, row).map((value, i) => mode.theta[i] + 1.2 * value));
  const log = theta.map((draw, n) => {
    const x = [1, ...draw], pairs = pairProducts(x);
    const likelihood = sumOf(items.map((item, k) => {
      const p = clip(chanceAt(bank, item, x, pairs), 1e-7, 1 - 1e-7);
      return seen[k] * Math.log(p) + (1 - seen[k]) * Math.log1p(-p);
    }));
    return likelihood + logPrior(bank, draw) + dot(bank.noise[n], bank.noise[n]) / 2;
  });
  const most = Math.max(...log), share = log.map((value) => Math.exp(value - most)), total = sumOf(share);
  return { theta, weights: share.map((value) => value / total), mode: mode.theta };
}

// the expected score and its variance, from the curves of one number of dimensions (predict_score)
function predictScore(bank, weights, items, seen, start) {
  const { theta, weights: share, mode } = samplePosterior(bank, items, seen, start);
  const left = [...weights], perItem = weights.map(() => 0), squares = weights.map(() => 0);
  items.forEach((item) => (left[item] = 0));
  const mass = sumOf(left), scored = sumOf(items.map((item, n) => weights[item] * seen[n]));
  const scores = theta.map((draw, n) => {
    const x = [1, ...draw], pairs = pairProducts(x);
    let rest = 0, all = 0;
    for (let item = 0; item < weights.length; item++) {
      const p = chanceAt(bank, item, x, pairs);
      rest += left[item] * p;
      all += weights[item] * p;
      perItem[item] += share[n] * p;
      squares[item] += share[n] * p * p;
    }
    const kernel = bank.fitted.map((score) => Math.exp(-(((all - score) / 0.07) ** 2) / 2));
    return scored + rest + (mass * dot(kernel, bank.residual)) / (sumOf(kernel) + 2);
  });
  const score = dot(share, scores), between = sumOf(scores.map((value, n) => share[n] * (value - score) ** 2));
  return { score, perItem, mode, variance: between + sumOf(left.map((w, item) => w * w * (perItem[item] - squares[item]))) };
}

// the mean over several numbers of dimensions (pool_predictions)
function averagePrediction(fitted, items, seen) {
  const parts = [], count = fitted.banks.length;
  for (const bank of fitted.banks) { // first axes agree: each search begins at the last ability along them
    const start = parts.length ? parts.at(-1).mode[0] : 0;
    parts.push(predictScore(bank, fitted.weights, items, seen, start));
  }
  const score = sumOf(parts.map((part) => part.score)) / count;
  const between = count > 1 ? sumOf(parts.map((part) => (part.score - score) ** 2)) / (count - 1) : 0;
  const perItem = fitted.weights.map((_, item) => sumOf(parts.map((part) => part.perItem[item])) / count);
  return { score, perItem, variance: sumOf(parts.map((part) => part.variance)) / count + between };
}

// a fitted method as it is stored; its curves are read once
function readFitted(stored) {
  const count = stored.easiness.length, banks = stored.banks.map(({ dims, floats }) => readBank(floats, dims, count, stored.sources));
  return { ...stored, banks, weights: Array(count).fill(1 / count) };
}

const clipped = ({ score, half, ...rest }) => { // as evaluation.simulate.complete
  const middle = clip(score, 0, 1);
  return { ...rest, score: middle, low: Math.min(clip(score - half, 0, 1), middle), high: Math.max(clip(score + half, 0, 1), middle) };
};

// what the answers leave possible bounds a score and its interval (keep_to_certain)
function keepToCertain(fitted, items, seen, told) {
  if (!items.length) return told;
  const total = sumOf(fitted.weights), share = items.map((item) => fitted.weights[item] / total);
  const least = sumOf(seen.map((value, n) => value * share[n])), rest = 1 - sumOf(share), most = Math.min(1, least + rest);
  const score = clip(told.score, least, most), open = fitted.weights.length - items.length;
  let { low, high } = told;
  if (open > items.length && low <= 0 && high >= 1) return { ...told, score };
  if (open && open <= items.length) {
    const step = rest / open; // what one open item is worth
    low = least + step * Math.floor((low - least) / step + 1e-6);
    high = least + step * Math.ceil((high - least) / step - 1e-6);
  }
  if (Math.max(...seen) === 0) low = least;
  if (Math.min(...seen) === 1) high = most;
  low = Math.min(Math.max(low, least), most);
  high = Math.max(Math.min(high, most), low);
  return { ...told, score, low: Math.min(low, score), high: Math.max(high, score) };
}

// the estimate from a list's answers (GuardedIRT.estimate with one round); null: not scored (yet)
function guardedEstimate(fitted, list, answers) {
  const places = list.items.map((_, n) => n).filter((n) => answers[n] !== null);
  const items = places.map((n) => list.items[n]), seen = places.map((n) => answers[n]);
  const probabilities = places.map((n) => list.probabilities[n]), z = fitted.z;
  const model = averagePrediction(fitted, items, seen);
  const curve = targetCurve(fitted.easiness, items, seen);
  const sample = modelAssisted(fitted.weights, probabilities, curve, items, seen);
  const spread = Math.min((fitted.t[Math.max(items.length - 2, 1) - 1] * sample.se) / z, 2 * sample.se);
  const sampleSe = Math.sqrt(fitted.balanceGain * spread ** 2);
  const middle = (model.score + sample.score) / 2, error = Math.sqrt((model.variance + sampleSe ** 2) / 4);
  const outside = normalCdf(-(fitted.ceiling - middle) / Math.max(error, 1e-9));
  const fit = personFit(items.map((item) => model.perItem[item]), seen);
  const misfit = fit < fitted.misfitLimit, inRange = outside <= fitted.limit && !misfit;
  const guard = inRange ? "in range" : misfit ? "misfit" : "out of range";
  const modelSe = list.inflation * Math.sqrt(model.variance), told = { guard, outside, fit, count: items.length };
  const bounded = (own) => keepToCertain(fitted, items, seen, clipped({ ...told, ...own }));
  if (inRange) return bounded({ score: model.score, half: z * modelSe, design: false });
  const weight = misfit ? 1 : Math.min(1, 2 * outside);
  if (weight === 1) return bounded({ weight, score: sample.score, half: z * sampleSe, design: true });
  const apart = weight * (1 - weight) * (sample.score - model.score) ** 2;
  const se = Math.sqrt(weight * sampleSe ** 2 + (1 - weight) * modelSe ** 2 + apart);
  return bounded({ weight, score: weight * sample.score + (1 - weight) * model.score, half: z * se, design: false });
}

// what the curves alone predict from any tasks, which are no random sample: nothing guards it
function curvesAlone(fitted, list, items, seen) {
  const model = averagePrediction(fitted, items, seen);
  const told = { guard: "none", count: items.length, score: model.score, half: fitted.z * list.inflation * Math.sqrt(model.variance), design: false };
  return keepToCertain(fitted, items, seen, clipped(told));
}

// AIPW on all of the list's tasks (assisted_estimate in benchnb.evaluation.guard)
function assistedEstimate(fitted, list, seen, probabilities) {
  const raw = fitted.ease.map((rate) => logit(clip(rate, 0.01, 0.99))), mean = sumOf(raw) / raw.length;
  const deviation = Math.sqrt(sumOf(raw.map((value) => (value - mean) ** 2)) / raw.length);
  const easiness = raw.map((value) => (value - mean) / Math.max(deviation, 1e-9));
  return modelAssisted(fitted.weights, probabilities, targetCurve(easiness, list.items, seen), list.items, seen);
}

// do the answers show that the model has the sources' profile? (measure_likeness in
// benchnb.evaluation.guard, for a method whose own guard has found it in range)
function likenessIsShown(fitted, list, seen) {
  const easiness = list.items.map((item) => logit(clip(fitted.ease[item], 0.01, 0.99))), count = seen.length;
  const meanX = sumOf(easiness) / count, meanY = sumOf(seen) / count;
  const common = sumOf(seen.map((y, k) => (y - meanY) * (easiness[k] - meanX)));
  const spread = Math.sqrt(sumOf(seen.map((y) => (y - meanY) ** 2)) * sumOf(easiness.map((x) => (x - meanX) ** 2)));
  const profile = count < 5 || spread < 1e-9 ? 0 : (common / spread) * Math.sqrt(count - 1);
  return profile > 1.28;
}

// what a reader gets of a finished list (Guard with the policy aipw): flags, and AIPW instead
// where the model is unlike the sources and the estimate rests on curves
function reportedEstimate(fitted, list, seen) {
  const own = guardedEstimate(fitted, list, seen), count = seen.length, flags = [];
  const [weakest, strongest] = fitted.range;
  if (own.score > strongest) flags.push("above");
  if (own.score < weakest) flags.push("below");
  const easiness = list.items.map((item) => logit(clip(fitted.ease[item], 0.01, 0.99)));
  const [level] = fitLogistic(seen.map(() => [1]), seen, [0], [[1e-9]], easiness);
  const fit = personFit(easiness.map((x) => logistic(x + level)), seen);
  const equal = Array(count).fill(count / fitted.weights.length);
  const correction = assistedEstimate(fitted, list, seen, equal).score - own.score;
  if (fit < fitted.usualFit[0]) flags.push("pattern");
  if (correction < fitted.usualCorrection[0] || correction > fitted.usualCorrection[1]) flags.push("correction");
  if (own.design) return { ...own, flags };
  if (!flags.length) return { ...own, flags, unchecked: !likenessIsShown(fitted, list, seen) };
  const instead = assistedEstimate(fitted, list, seen, list.probabilities), score = clip(instead.score, 0, 1);
  const half = fitted.t[Math.max(count - 2, 1) - 1] * instead.se;
  const told = { ...own, flags, design: true, fallback: true, score, low: Math.max(0, score - half), high: Math.min(1, score + half) };
  return keepToCertain(fitted, list.items, seen, told);
}
