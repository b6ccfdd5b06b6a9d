import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { Reader, decodeColumn, fromBase64, inflate, readColumns } from "../decode.js";

const bytes = (...list) => Uint8Array.from(list);

test("numbers have 7 bits in each byte", () => {
  const reader = new Reader(bytes(0x7f, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f));
  assert.equal(reader.varint(), 127);
  assert.equal(reader.varint(), 128);
  assert.equal(reader.varint(), Number.MAX_SAFE_INTEGER);
});

test("numbers with a sign are in zigzag form", () => {
  const reader = new Reader(bytes(0, 1, 2, 3));
  assert.deepEqual([reader.signed(), reader.signed(), reader.signed(), reader.signed()], [0, -1, 1, -2]);
});

test("integers of 8 bytes are exact", () => {
  const reader = new Reader(bytes(...new Array(16).fill(0xff)));
  assert.equal(String(reader.big(false)), "18446744073709551615");
  assert.equal(String(reader.big(true)), "-1");
});

test("a torn column is an error", () => {
  assert.throws(() => new Reader(bytes(0x80)).varint(), /torn/);
});

test("differences are summed up", () => {
  assert.deepEqual([...decodeColumn("delta", bytes(20, 2, 1), 3)], [10, 11, 10]);
});

test("texts are UTF-8 with their length before them", () => {
  assert.deepEqual(decodeColumn("text", bytes(0, 3, 0xc3, 0xa4, 0x62), 2), ["", "äb"]);
});

test("unknown forms are named", () => {
  assert.throws(() => decodeColumn("roman", bytes(), 0), /roman/);
});

test("blocks are deflated and in base64", async () => {
  const block = deflateRawSync(bytes(5, 6)).toString("base64");
  assert.deepEqual([...(await inflate(fromBase64(block)))], [5, 6]);
  const columns = await readColumns({ a: { block: 0, form: "unsigned", count: 2 } }, () => block);
  assert.deepEqual([...columns.a], [5, 6]);
});
