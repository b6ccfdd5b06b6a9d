// Columns of numbers, texts and arguments, read from the blocks of the page.
//
// A block is a `<script>` element of a type that browsers do not run. Its text is base64 of
// deflated bytes (no header). The description of the trace names the block and the form of each
// column; crates/report/src/columns.rs writes them.

/** Returns the bytes of a text in base64. */
export function fromBase64(text) {
  if (typeof Uint8Array.fromBase64 === "function") return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Inflates bytes without a header. */
export async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A position in bytes from which numbers are read. */
export class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Reads a number of variable length below 2^53. */
  varint() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let scale = 0x80;
    do {
      byte = bytes[this.at++];
      if (byte === undefined) throw new Error("a column of this page is torn");
      value += (byte & 0x7f) * scale;
      scale *= 0x80;
    } while (byte >= 0x80);
    return value;
  }

  /** Reads a number with a sign, in zigzag form. */
  signed() {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** Reads a 64-bit floating-point number. */
  double() {
    const value = this.view.getFloat64(this.at, true);
    this.at += 8;
    return value;
  }

  /** Reads an integer of 8 bytes. */
  big(signed) {
    const value = signed ? this.view.getBigInt64(this.at, true) : this.view.getBigUint64(this.at, true);
    this.at += 8;
    return value;
  }

  /** Reads `length` bytes of UTF-8. */
  text(length) {
    const text = UTF8.decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }
}

const UTF8 = new TextDecoder();

/** Returns a column of numbers below 2^32. */
export function unsignedColumn(bytes, count) {
  const reader = new Reader(bytes);
  const column = new Uint32Array(count);
  for (let i = 0; i < count; i++) column[i] = reader.varint();
  return column;
}

/** Returns a column of integers below 2^53. */
export function integerColumn(bytes, count) {
  const reader = new Reader(bytes);
  const column = new Float64Array(count);
  for (let i = 0; i < count; i++) column[i] = reader.signed();
  return column;
}

/** Returns a column of integers that was written as differences. */
export function deltaColumn(bytes, count) {
  const reader = new Reader(bytes);
  const column = new Float64Array(count);
  let value = 0;
  for (let i = 0; i < count; i++) {
    value += reader.signed();
    column[i] = value;
  }
  return column;
}

/** Returns a column of floating-point numbers. */
export function doubleColumn(bytes, count) {
  const reader = new Reader(bytes);
  const column = new Float64Array(count);
  for (let i = 0; i < count; i++) column[i] = reader.double();
  return column;
}

/** Returns a list of texts. */
export function textColumn(bytes, count) {
  const reader = new Reader(bytes);
  const column = new Array(count);
  for (let i = 0; i < count; i++) column[i] = reader.text(reader.varint());
  return column;
}

const FORMS = {
  bytes: (bytes) => bytes,
  unsigned: unsignedColumn,
  integer: integerColumn,
  delta: deltaColumn,
  double: doubleColumn,
  text: textColumn,
};

/** Decodes a column; `form` is one of the names in `FORMS`. */
export function decodeColumn(form, bytes, count) {
  const decode = FORMS[form];
  if (!decode) throw new Error(`this page has a column of the unknown form ${form}`);
  return decode(bytes, count);
}

/** Reads all columns of a description; `textOf(block)` returns the base64 of a block. */
export async function readColumns(descriptions, textOf) {
  const entries = Object.entries(descriptions);
  const columns = await Promise.all(
    entries.map(async ([, { block, form, count }]) =>
      decodeColumn(form, await inflate(fromBase64(textOf(block))), count),
    ),
  );
  return Object.fromEntries(entries.map(([name], i) => [name, columns[i]]));
}
