// check.js REPOSITORY: the Dockerfile is well-formed, and every Kubernetes manifest is what its kind's types allow: a field
// that is unknown, missing or of another type is an error. Prints what is wrong, a line each; the status says whether.
//
//   manifest ─ yaml ─▶ object ─▶ `const document: DaemonSet = {...}` ─ TypeScript, kubernetes-types ─▶ errors
const fs = require("fs");
const path = require("path");
const typescript = require("typescript");
const yaml = require("yaml");
const dockerfile = require("dockerfile-utils");

const root = process.argv[2];
const wrong = [];

// "apps/v1" → "kubernetes-types/apps/v1"; "v1" is core's.
function moduleOf(apiVersion) {
  return "kubernetes-types/" + (apiVersion.includes("/") ? apiVersion.replace(".k8s.io", "") : "core/" + apiVersion);
}

// Types say string where the API server wants a quantity or a duration; they know all that is checked here.
function errorsOf(objects) {
  const name = path.join(__dirname, "manifest.ts");
  const text = objects.map((each, i) =>
    `import {${each.kind} as Kind${i}} from "${moduleOf(each.apiVersion)}";\nconst document${i}: Kind${i} = ${JSON.stringify(each)};\n`).join("");
  const options = {noEmit: true, strict: true, types: [], moduleResolution: typescript.ModuleResolutionKind.Node10};
  const host = typescript.createCompilerHost(options);
  const readFile = host.getSourceFile;
  host.getSourceFile = (file, ...more) => file === name ? typescript.createSourceFile(file, text, ...more) : readFile(file, ...more);
  const program = typescript.createProgram([name], options, host);
  return typescript.getPreEmitDiagnostics(program).map((each) => typescript.flattenDiagnosticMessageText(each.messageText, " "));
}

function read(file) {
  return yaml.parseAllDocuments(fs.readFileSync(file, "utf8"), {version: "1.1"}).map((document) => {
    for (const error of document.errors) wrong.push(`${file}: ${error.message}`);
    return document.toJS();
  });
}

const folder = path.join(root, "docker/kubernetes");
const manifests = fs.readdirSync(folder).filter((name) => name.endsWith(".yaml"));
for (const name of manifests) {
  for (const error of errorsOf(read(path.join(folder, name)))) wrong.push(`${name}: ${error}`);
}

// What no schema says: references between objects meet.
const objects = manifests.flatMap((name) => read(path.join(folder, name)));
for (const each of objects.filter((object) => object.spec?.template)) {
  const pod = each.spec.template;
  const where = `${each.kind} ${each.metadata.name}`;
  const expect = (truth, what) => truth || wrong.push(`${where}: ${what}`);
  const matches = (selector, labels) => Object.entries(selector).every(([key, value]) => labels[key] === value);
  expect(matches(each.spec.selector.matchLabels, pod.metadata.labels), "its selector does not match its pods");
  expect(objects.some((object) => object.kind === "Service" && matches(object.spec.selector, pod.metadata.labels)), "no Service selects its pods");
  for (const container of pod.spec.containers) {
    for (const mount of container.volumeMounts) {
      expect(pod.spec.volumes.some((volume) => volume.name === mount.name), `no volume ${mount.name}`);
    }
  }
  for (const volume of pod.spec.volumes.filter((one) => one.configMap)) {
    expect(objects.some((object) => object.kind === "ConfigMap" && object.metadata.name === volume.configMap.name), `no ConfigMap ${volume.configMap.name}`);
  }
}

for (const problem of dockerfile.validate(fs.readFileSync(path.join(root, "docker/Dockerfile"), "utf8"))) {
  wrong.push(`Dockerfile:${problem.range.start.line + 1}: ${problem.message}`);
}

// For the daemons' own checks of their configuration: the files in the ConfigMaps, and the arguments of the containers.
if (process.argv[3]) {
  for (const map of objects.filter((object) => object.kind === "ConfigMap")) {
    for (const [file, text] of Object.entries(map.data)) fs.writeFileSync(path.join(process.argv[3], file), text);
  }
}
console.log(wrong.join("\n") || `${objects.length} objects of ${manifests.length} manifests and the Dockerfile are well-formed`);
process.exit(wrong.length ? 1 : 0);
