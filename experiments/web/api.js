/**
 * Calls of the server. An answer that is an error is thrown as a `Problem`, with what it says.
 * Addresses are beside the page, so that a proxy may put both below a folder.
 */

/** An answer of the server that is an error: `status`, `code`, `field`, and `message`. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `HTTP ${status}`);
    this.status = status;
    this.code = body.code || "";
    this.field = body.field || "";
  }
}

async function call(method, path, body, more = {}) {
  const options = {method, headers: {Accept: "application/json", ...more}, cache: "no-store"};
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Problem(0, {code: "unreachable", detail: ""});
  }
  const text = await answer.text();
  if (!answer.ok) {
    let told = {};
    try {
      told = JSON.parse(text);
    } catch {
      // an error that is not JSON is told by its status alone
    }
    throw new Problem(answer.status, told);
  }
  return text;
}

const parsed = async (...args) => {
  const text = await call(...args);
  return text ? JSON.parse(text) : null;
};

const query = (values) => {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return new URLSearchParams(given).toString();
};

const at = (id, rest = "") => `v1/tables/${encodeURIComponent(id)}${rest}`;

/** Swaps the one-time code of the page's address for a cookie. */
export const enter = (code) => call("POST", "v1/session", undefined, {Authorization: `Bearer ${code}`});
export const choices = () => parsed("GET", "v1/tables");
export const check = (game) => parsed("POST", "v1/tables/check", game);
export const open = (wanted) => parsed("POST", "v1/tables", wanted);
export const look = (id, {viewer, ply, after}) => parsed("GET", at(id, `?${query({viewer, ply, after})}`));
/** What people do: move, undo, goto, resign, review, open, run, branch, analyse, cancel. */
export const act = (id, what, body) => parsed("POST", at(id, `/${what}`), body);
export const close = (id) => call("DELETE", at(id));
export const record = (id) => call("GET", at(id, "/record"));
export const text = async (id, viewer, ply) => (await parsed("GET", at(id, `/text?${query({viewer, ply})}`))).text;
