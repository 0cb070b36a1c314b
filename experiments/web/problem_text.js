/**
 * What an error of the server says: {code, field, message}; `t` as in i18n.js. Its kind is told
 * in the page's language, what it is about in the server's.
 */
export function problemText(problem, t) {
  if (problem.code === "unreachable") return t("page.unreachable");
  const known = t(`problem.${problem.code}`);
  const title = known.startsWith("problem.") ? t("problem.unknown") : known;
  return t("problem.told", {title, detail: problem.field ? `${problem.field}: ${problem.message}` : problem.message});
}
