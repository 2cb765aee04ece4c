// Shows the OpenAPI document of this server. Everything is put in as text, nothing as HTML.

const contents = document.getElementById("contents");
const main = document.getElementById("content");
const api = await (await fetch("openapi.json")).json();

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== undefined && child !== ""));
  return element;
}

/** Text in which `...` stands for code. */
function prose(text = "") {
  return text.split("`").map((piece, index) => (index % 2 ? make("code", {}, piece) : piece));
}

function nameOf(schema) {
  return schema.$ref.split("/").at(-1);
}

function link(name) {
  return make("a", { href: `#schema-${name}` }, name);
}

function joined(parts, separator) {
  return parts.flatMap((part, index) => (index ? [separator, ...part] : part));
}

function limits(schema) {
  const said = [];
  const bounds = { minimum: "≥", maximum: "≤", minLength: "length ≥", maxLength: "length ≤", minItems: "items ≥", maxItems: "items ≤" };
  for (const [key, sign] of Object.entries(bounds)) if (schema[key] !== undefined) said.push(`${sign} ${schema[key]}`);
  if (schema.format) said.push(schema.format);
  if (schema.default !== undefined && schema.default !== null) said.push(`default ${JSON.stringify(schema.default)}`);
  return said.length ? ` (${said.join(", ")})` : "";
}

/** A schema in a few words, as nodes. */
function typed(schema) {
  if (schema.$ref) return [link(nameOf(schema))];
  if (schema.const !== undefined) return [make("code", {}, JSON.stringify(schema.const))];
  if (schema.enum) return joined(schema.enum.map((value) => [make("code", {}, JSON.stringify(value))]), " | ");
  const choices = schema.oneOf ?? (schema.properties ? undefined : schema.anyOf);
  if (choices) return joined(choices.map(typed), " | ");
  if (schema.type === "array") return ["array of ", ...typed(schema.items ?? {}), limits(schema)];
  return [`${schema.type ?? "any"}${limits(schema)}`];
}

function table(headings, rows) {
  const head = make("tr", {}, ...headings.map((heading) => make("th", { scope: "col" }, heading)));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, ...cell))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

function properties(schema) {
  const required = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([name, value]) => [
    [make("code", {}, name), required.has(name) ? "" : " (optional)"],
    typed(value),
    prose(value.description),
  ]);
  return rows.length ? table(["Member", "Type", ""], rows) : "";
}

function contentOf(answer) {
  const [kind, content] = Object.entries(answer.content ?? {})[0] ?? [];
  if (!kind) return [];
  return kind === "application/json" ? typed(content.schema) : [kind];
}

function resolved(header) {
  return header.$ref ? api.components.headers[nameOf(header)] : header;
}

function extraHeaders(answer) {
  const usual = new Set(["Bubble-Protocol-Version", "X-Request-Id"]);
  const names = Object.keys(answer.headers ?? {}).filter((name) => !usual.has(name));
  return names.length ? [" · header ", ...joined(names.map((name) => [make("code", { title: resolved(answer.headers[name]).description }, name)]), ", ")] : [];
}

function operation(path, method, about) {
  const article = make(
    "article",
    { id: about.operationId },
    make("h3", {}, make("span", { class: "method" }, method.toUpperCase()), make("code", {}, path)),
    make("p", {}, make("strong", {}, about.summary.endsWith("?") ? `${about.summary} ` : `${about.summary}. `), ...prose(about.description)),
  );
  if (!about.security.length) article.append(make("p", { class: "quiet" }, "Needs no bearer."));
  const parameters = about.parameters.map((each) => [
    [make("code", {}, each.name), each.required ? "" : " (optional)"],
    [each.in],
    typed(each.schema),
    prose(each.description),
  ]);
  if (parameters.length) article.append(make("h4", {}, "Parameters"), table(["Name", "In", "Type", ""], parameters));
  if (about.requestBody) {
    article.append(make("h4", {}, about.requestBody.required ? "Body" : "Body (optional)"), make("p", {}, ...typed(about.requestBody.content["application/json"].schema)));
  }
  const answers = Object.entries(about.responses).map(([status, answer]) => [
    [make("code", {}, status)],
    [...prose(answer.description), ...extraHeaders(answer)],
    contentOf(answer),
  ]);
  article.append(make("h4", {}, "Answers"), table(["Status", "", "Content"], answers));
  return article;
}

function section(heading, id, entries) {
  main.append(make("h2", { id }, heading), ...entries.map((entry) => entry.article));
  contents.append(
    make("h2", {}, heading),
    make("ul", {}, ...entries.map((entry) => make("li", {}, make("a", { href: `#${entry.article.id}` }, entry.label)))),
  );
}

const all = Object.entries(api.paths).flatMap(([path, item]) => Object.entries(item).map(([method, about]) => ({ path, method, about })));
for (const { name } of api.tags) {
  const mine = all.filter(({ about }) => about.tags.includes(name));
  section(name, `tag-${name}`, mine.map(({ path, method, about }) => ({ article: operation(path, method, about), label: about.summary })));
}
section(
  "Schemas",
  "schemas",
  Object.entries(api.components.schemas)
    .sort(([one], [other]) => one.localeCompare(other))
    .map(([name, schema]) => ({
      label: name,
      article: make("article", { id: `schema-${name}` }, make("h3", {}, name), make("p", {}, ...prose(schema.description)), schema.properties ? properties(schema) : make("p", {}, ...typed(schema))),
    })),
);

document.getElementById("summary").textContent = `${api.info.summary}. Version ${api.info.version}.`;
if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
