// Numbers as people read them. Unknown is a dash, never 0.

const DASH = "–";

function scaled(value, units, base = 1000) {
  if (value === null || value === undefined || !Number.isFinite(value)) return DASH;
  let step = 0;
  let left = Math.abs(value);
  while (left >= base && step < units.length - 1) {
    left /= base;
    step += 1;
  }
  const shown = left === 0 ? "0" : left >= 100 ? left.toFixed(0) : left >= 10 ? left.toFixed(1) : left.toFixed(2);
  return `${value < 0 ? "−" : ""}${shown} ${units[step]}`;
}

/** Frames per second. */
export const rate = (value) => scaled(value, ["pps", "kpps", "Mpps", "Gpps"]);
/** Bits per second. */
export const bits = (value) => scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
/** Nanoseconds. */
export const time = (value) => scaled(value, ["ns", "µs", "ms", "s"]);
/** A plain number, with thousands apart. */
export const count = (value) =>
  value === null || value === undefined ? DASH : value.toLocaleString("en").replaceAll(",", " ");
/** Something each second. */
export const perSecond = (value) => scaled(value, ["/s", "k/s", "M/s"]);

/** A share of 0 to 1 in percent; small ones keep their digits. */
export function percent(share) {
  if (share === null || share === undefined) return DASH;
  const value = share * 100;
  if (value === 0) return "0 %";
  return value >= 10
    ? `${value.toFixed(1)} %`
    : value >= 0.001
      ? `${Number(value.toPrecision(3))} %`
      : `${value.toExponential(1)} %`;
}

/** Seconds as minutes and seconds. */
export function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  if (hours) return `${hours} h ${String(minutes).padStart(2, "0")} min`;
  return minutes ? `${minutes} min ${String(whole % 60).padStart(2, "0")} s` : `${whole} s`;
}

/** How a value is written, by the unit that its name ends with; `unit` is that of its table. */
export function formOf(name, unit) {
  if (name.endsWith("_frames_per_s")) return rate;
  if (name.endsWith("_bits_per_s")) return bits;
  if (name.endsWith("_ns")) return time;
  const suffix = unit ? ` ${unit}` : "";
  return (value) => {
    if (value === null || value === undefined) return DASH;
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
