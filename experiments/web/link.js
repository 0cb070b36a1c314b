/**
 * A game and a place in it as part of an address, "#record=…&ply=3": nothing is kept anywhere, and
 * what stands after # is not sent to any server before the page opens it.
 */

import {Problem} from "./api.js";

/** Characters of such an address at most, and of the record inside, which the server takes. */
const LINK = 16_000;
const RECORD = 1_000_000;

const wrong = (detail) => new Problem(0, {code: "invalid", field: "link", detail});

/** The bytes of a stream; a Problem when there are more than `most`. */
async function collected(stream, most) {
  const parts = [];
  let size = 0;
  for (const reader = stream.getReader(); ; ) {
    const {done, value} = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw wrong(`a record of more than ${most} characters`);
    }
    parts.push(value);
  }
}

/** The address of the page for a record (its text) at a ply, without analysis; null: too long. */
export async function linked(text, ply) {
  const record = JSON.parse(text);
  record.moves = record.moves.map(({analysis, ...move}) => move);
  if (record.meta) delete record.meta.analysis;
  const plain = new Blob([JSON.stringify(record)]).stream();
  const bytes = await collected(plain.pipeThrough(new CompressionStream("deflate-raw")), RECORD);
  const word = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const safe = word.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const address = `${location.href.split("#")[0]}#${new URLSearchParams({record: safe, ply})}`;
  return address.length <= LINK ? address : null;
}

/** {record: its text, ply: number} of what an address says; throws a Problem. */
export async function unlinked({record, ply = "0"}) {
  if (record.length > LINK) throw wrong(`longer than ${LINK} characters`);
  if (!/^\d{1,6}$/.test(ply)) throw wrong("ply is a whole number");
  let packed;
  try {
    const word = atob(record.replaceAll("-", "+").replaceAll("_", "/"));
    packed = Uint8Array.from(word, (character) => character.charCodeAt(0));
  } catch {
    throw wrong("it was cut or changed on its way");
  }
  try {
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return {record: new TextDecoder("utf-8", {fatal: true}).decode(await collected(stream, RECORD)), ply: Number(ply)};
  } catch (error) {
    throw error instanceof Problem ? error : wrong("it was cut or changed on its way");
  }
}
