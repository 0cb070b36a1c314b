// The page of the API: reads openapi.json and shows it. Texts are set, never parsed as HTML.

import "./session.js";

const make = (name, text = "", ...children) => {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};

/** What a JSON schema allows, in a few words. */
function words(schema, all) {
  if (!schema) return "";
  if (schema.$ref) return words(all[schema.$ref.split("/").pop()], all);
  if (schema.anyOf) return [...new Set(schema.anyOf.map((one) => words(one, all)))].join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const limits = [];
  if (schema.minimum !== undefined) limits.push(`from ${schema.minimum}`);
  if (schema.maximum !== undefined) limits.push(`to ${schema.maximum}`);
  if (schema.maxLength !== undefined) limits.push(`at most ${schema.maxLength} characters`);
  if (schema.maxItems !== undefined) limits.push(`at most ${schema.maxItems}`);
  const kind = schema.type === "array" ? `list of ${words(schema.items, all) || "values"}` : schema.type || "any";
  return [kind, ...limits].join(", ");
}

function fields(schema, all) {
  const whole = schema.$ref ? all[schema.$ref.split("/").pop()] : schema;
  const table = make("table");
  table.append(make("tr", "", make("th", "field"), make("th", "what it takes"), make("th", "meaning")));
  for (const [name, one] of Object.entries(whole.properties || {})) {
    const needed = (whole.required || []).includes(name) ? " (needed)" : "";
    const told = one.description || "";
    const plain = one.default !== undefined && one.default !== null ? ` Default ${JSON.stringify(one.default)}.` : "";
    table.append(make("tr", "", make("td", "", make("code", name + needed)), make("td", words(one, all)), make("td", told + plain)));
  }
  return table;
}

function route(path, method, told, all) {
  const section = make("section", "", make("h2", `${method.toUpperCase()} ${path}`));
  section.append(make("p", told.description || told.summary || ""));
  const body = told.requestBody?.content?.["application/json"]?.schema;
  if (body) section.append(fields(body, all));
  return section;
}

const state = document.getElementById("state");
try {
  const answer = await fetch("openapi.json");
  if (!answer.ok) throw new Error((await answer.json()).detail);
  const told = await answer.json();
  const all = told.components?.schemas || {};
  const home = document.getElementById("routes");
  for (const [path, methods] of Object.entries(told.paths)) {
    for (const [method, one] of Object.entries(methods)) home.append(route(path, method, one, all));
  }
  state.textContent = `Version ${told.info.version}`;
} catch (error) {
  state.textContent = `Not loaded: ${error.message}`;
}
