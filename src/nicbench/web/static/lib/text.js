// Numbers as people read them. Unknown is a dash, never 0.

const DASH = "–";

/** How many digits behind the point tell multiples of `step` apart: 2 for 0.25, 1 for 0.5. */
function digitsOf(step) {
  for (let digits = 0; digits < 9; digits += 1) {
    const left = step * 10 ** digits;
    if (left >= 0.999 && Math.abs(left - Math.round(left)) < 1e-6 * left) return digits;
  }
  return 9;
}

/** A number with its unit; `step`, where it is one of several on an axis, is the distance between two of them. */
function scaled(value, units, step = 0) {
  const base = 1000;
  if (value === null || value === undefined || !Number.isFinite(value)) return DASH;
  let unit = 0;
  let left = Math.abs(value);
  while (left >= base && unit < units.length - 1) {
    left /= base;
    unit += 1;
  }
  const digits = step > 0 ? digitsOf(step / base ** unit) : left >= 100 ? 0 : left >= 10 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${left === 0 ? "0" : left.toFixed(digits)} ${units[unit]}`;
}

/** Frames per second. */
export const rate = (value, step) => scaled(value, ["pps", "kpps", "Mpps", "Gpps"], step);
/** Bits per second. */
export const bits = (value, step) => scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"], step);
/** Nanoseconds. */
export const time = (value, step) => scaled(value, ["ns", "µs", "ms", "s"], step);
/** Cycles per second. */
/** A plain number, with thousands apart. */
export const count = (value) =>
  value === null || value === undefined ? DASH : value.toLocaleString("en").replaceAll(",", " ");
/** So many of something, by its name for one and for several. */
export const several = (number, one, more) => `${count(number)} ${number === 1 ? one : more}`;
/** Something each second. */
export const perSecond = (value, step) => scaled(value, ["/s", "k/s", "M/s"], step);

/** A share of 0 to 1 in percent; small ones keep their digits. */
export function percent(share) {
  if (share === null || share === undefined) return DASH;
  const value = share * 100;
  if (value === 0) return "0 %";
  return value >= 10
    ? `${value.toFixed(1)} %`
    : value >= 0.001
      ? `${Number(value.toPrecision(3))} %`
      : `${Number(value.toPrecision(2)).toFixed(Math.min(12, 1 - Math.floor(Math.log10(value)))).replace(/0+$/, "")} %`;
}

/** Seconds as minutes and seconds. */
export function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  if (hours) return `${hours} h ${String(minutes).padStart(2, "0")} min`;
  return minutes ? `${minutes} min ${String(whole % 60).padStart(2, "0")} s` : `${whole} s`;
}

/** How a value is written, by the unit that its name ends with; `unit` is that of its table. On an axis the second
 * argument is the step of its marks, which have as many digits as that needs. */
export function formOf(name, unit) {
  if (name.endsWith("_frames_per_s")) return rate;
  if (name.endsWith("_bits_per_s")) return bits;
  if (name.endsWith("_ns")) return time;
  const suffix = unit ? ` ${unit}` : "";
  return (value, step = 0) => {
    if (value === null || value === undefined) return DASH;
    if (step > 0) {
      const digits = digitsOf(step);
      const places = { minimumFractionDigits: digits, maximumFractionDigits: digits };
      return `${value.toLocaleString("en", places).replaceAll(",", " ")}${suffix}`;
    }
    const shown = Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(4));
    return `${count(shown)}${suffix}`;
  };
}

/** A time in seconds since 1970 as a date in UTC; with `step` seconds between two of them only as much as differs. */
export function date(seconds, step = 0) {
  const text = new Date(seconds * 1000).toISOString();
  if (step >= 27 * 86400) return text.slice(0, 7);
  return step >= 86400 ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
}

/** A change in percent, with its sign. */
export const change = (value) =>
  value === null ? "from 0" : `${value < 0 ? "−" : "+"}${Number(Math.abs(value).toPrecision(2))} %`;

/** A purpose of a trial in words. */
export const words = (name) => (name ? name.replaceAll("_", " ") : "");
