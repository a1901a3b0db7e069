// Python in a worker: Pyodide and the library are fetched once and kept by the browser
const version = new URL(location).searchParams.get("v");
const plain = self.fetch.bind(self);
let got = 0;

const counted = (answer) => {
  const reader = answer.body.getReader();
  const body = new ReadableStream({
    async pull(sink) {
      const { done, value } = await reader.read();
      if (done) return sink.close();
      got += value.length;
      postMessage({ got });
      sink.enqueue(value);
    },
  });
  return new Response(body, { status: answer.status, headers: answer.headers });
};

self.fetch = async (asked) => {
  const address = String(asked.url ?? asked);
  const store = await self.caches?.open(`benchnb ${version}`).catch(() => null);
  let answer = await store?.match(address);
  if (!answer) {
    answer = await plain(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
    if (store) await store.put(address, answer.clone());
  }
  return counted(answer);
};

const started = (async () => {
  for (const name of (await self.caches?.keys().catch(() => [])) ?? [])
    if (name.startsWith("benchnb ") && name !== `benchnb ${version}`) await caches.delete(name);
  importScripts("pyodide.js");
  const base = new URL(".", location).href;
  postMessage({ step: "Python" });
  const python = await loadPyodide({ indexURL: base, stdout: (text) => postMessage({ text }), stderr: (text) => postMessage({ text }) });
  postMessage({ step: "NumPy, SciPy, pandas, scikit-learn and Matplotlib" });
  await python.loadPackage(Object.keys(JSON.parse(await (await fetch(base + "pyodide-lock.json")).text()).packages), { messageCallback() {} });
  postMessage({ step: "benchnb and its leaderboards" });
  python.unpackArchive(await (await fetch(base + "benchnb.zip")).arrayBuffer(), "zip");
  python.runPython("import cells; cells.prepare()");
  postMessage({ ready: true });
  return python;
})();
started.catch((error) => postMessage({ failed: error.message }));

onmessage = async ({ data }) => {
  const python = await started;
  const cells = python.pyimport("cells");
  try {
    if (data.file) python.FS.writeFile(data.file, data.content);
    const [shown, error] = cells.run(data.source, data.name).toJs({ depth: 3 });
    postMessage({ done: data.key, shown, error: error ?? "" });
  } catch (error) {
    postMessage({ done: data.key, shown: [], error: error.message });
  }
};
