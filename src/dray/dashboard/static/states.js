// What devices are, in letters, words and colours.

export const FREE = 1;
export const HELD = 2;
export const TAINTED = 4;
export const BLOCKED = 8;
export const LEAVING = 16;

/** What is shown of a device that is several things: the first of these. */
export const ORDER = [
  { name: "leaving", bit: LEAVING, told: "a pod that uses it is being deleted" },
  { name: "tainted", bit: TAINTED, told: "a taint keeps claims without toleration away" },
  { name: "held", bit: HELD, told: "claims have it" },
  { name: "blocked", bit: BLOCKED, told: "nobody holds it, and no claim can have it" },
  { name: "free", bit: FREE, told: "a claim can have it now" },
];

/**
 * @param {string} letters
 * @param {number} position
 */
export function bitsAt(letters, position) {
  return letters.charCodeAt(position) - 48;
}

/** @param {number} bits */
export function kindOf(bits) {
  for (let index = 0; index < ORDER.length; index++) if (bits & ORDER[index].bit) return index;
  return ORDER.length - 1;
}

/** @param {number} bits */
export function words(bits) {
  const found = ORDER.filter((one) => bits & one.bit && !(one.name === "free" && bits & HELD)).map((one) => one.name);
  if (bits & HELD && bits & FREE) found.push("shareable");
  return found.reverse().join(", ") || "unknown";
}
