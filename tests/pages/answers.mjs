// What a reader does with a report, in the browser: rows sorted, filtered and saved, a point read, a part of a chart seen larger, a chart saved.
// ``answers(browser, path)`` returns what does not answer, in words; a page without tables or charts has nothing to try.

const tick = () => new Promise((done) => setTimeout(done, 120));

// Saved files are caught on their way.
const catchFiles = () => {
  window.saved = [];
  const own = URL.createObjectURL;
  URL.createObjectURL = (blob) => {
    blob.arrayBuffer().then((bytes) => window.saved.push({ type: blob.type, bytes: bytes.byteLength, text: new TextDecoder().decode(bytes).slice(0, 400) }));
    return own.call(URL, blob);
  };
};

async function savedFile(page) {
  await page.waitForFunction(() => window.saved.length, { timeout: 10_000 }).catch(() => {});
  const [file] = await page.evaluate(() => window.saved.splice(0));
  return file;
}

export async function answers(browser, path) {
  const wrong = [];
  const page = await browser.newPage();
  page.on("pageerror", (error) => wrong.push(error.message));
  await page.evaluateOnNewDocument(catchFiles);
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(`file://${path}`);
  await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  await tick();
  for (const part of [sorting, filtering, savingTable, charts]) await part(page, (words) => wrong.push(words));
  await page.close();
  return wrong;
}

async function sorting(page, tell) {
  const table = await page.$(".scroll > table:has(.sort)");
  if (!table) return;
  const column = () => table.evaluate((one) => [...one.querySelectorAll("tbody > tr")].map((row) => row.cells[0].textContent));
  const own = await column();
  const head = await table.$(".sort");
  const state = () => head.evaluate((one) => one.parentNode.getAttribute("aria-sort"));
  await head.focus();
  for (const expected of ["ascending", "descending", null]) {
    await page.keyboard.press("Enter");
    if ((await state()) !== expected) tell(`a head sorts ${await state()} in place of ${expected}`);
    if ([...(await column())].sort().join() !== [...own].sort().join()) tell("rows are lost by sorting");
  }
  if ((await column()).join() !== own.join()) tell("rows are not in their own order again");
}

async function filtering(page, tell) {
  const input = await page.$(".filter input");
  if (!input) return;
  const around = await input.evaluateHandle((one) => one.closest(".scroll"));
  const rows = () => around.evaluate((one) => [...one.querySelectorAll("tbody > tr")].filter((row) => !row.hidden).length);
  const all = await rows();
  await input.type("no row has these words");
  if ((await rows()) !== 0) tell("a filter that nothing fits leaves rows");
  await input.evaluate((one) => {
    one.value = "";
    one.dispatchEvent(new Event("input"));
  });
  if ((await rows()) !== all) tell("rows are missing when the filter is empty again");
}

async function savingTable(page, tell) {
  const button = await page.$(".scroll .tools button");
  if (!button) return;
  await button.focus();
  await page.keyboard.press("Enter");
  const file = await savedFile(page);
  if (file?.type !== "text/csv" || !file.text.includes(",")) tell("a table is not saved as CSV");
}

async function charts(page, tell) {
  for (const svg of await page.$$("svg[role=application]")) {
    const box = await svg.boundingBox();
    if (!box) continue;
    await svg.evaluate((one) => one.scrollIntoView({ block: "center" }));
    await tick(); // scrolling takes away what a chart says
    await svg.evaluate((one) => one.focus());
    await page.keyboard.press("ArrowRight");
    if (!(await page.$eval(".saying", (one) => !one.hidden && one.textContent))) tell("a point of a chart says nothing");
    for (const [at, type] of ["image/svg+xml", "image/png"].entries()) {
      await svg.evaluate((one, number) => one.parentNode.querySelectorAll(":scope > .tools button")[number].click(), at);
      const file = await savedFile(page);
      if (file?.type !== type || file.bytes < 500 || file.text.includes("var(")) tell(`a chart is not saved as ${type}`);
    }
    if (!(await svg.evaluate((one) => one.getAttribute("aria-description").includes("Plus")))) continue;
    const labels = () => svg.evaluate((one) => [...one.querySelectorAll(".role-axis-label > text:not(.off)")].map((text) => text.textContent).join("|"));
    const own = await labels();
    await svg.evaluate((one) => one.focus());
    for (const key of ["+", "+", "+"]) await page.keyboard.press(key);
    const larger = await labels();
    if (larger === own) tell("the axes of a larger part have the numbers of the whole");
    if (/NaN|Infinity|undefined/.test(larger)) tell(`the axes of a larger part say ${larger}`);
    await page.keyboard.press("Escape");
    if ((await labels()) !== own) tell("Escape does not show the whole chart again");
  }
}
