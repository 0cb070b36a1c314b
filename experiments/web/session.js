// Swaps the one-time code that a printed address carries (#code=...) for a cookie, before anything
// else is asked of the server.

const wanted = new URLSearchParams(location.hash.slice(1));
const found = wanted.get("code");
if (found) {
  wanted.delete("code"); // what else stands there, such as a table, is the page's
  const rest = wanted.toString();
  history.replaceState(null, "", location.pathname + location.search + (rest && `#${rest}`));
  await fetch("v1/session", { method: "POST", headers: { Authorization: `Bearer ${found}` } });
}
