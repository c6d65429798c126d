/* Begin: the text of the page is there already, then come the pictures. */
(async () => {
  const begin = performance.now();
  try {
    await Report.load();
    if (Report.facts.timeline) Report.drawTimeline();
    Report.drawHeats();
    Report.drawFlame();
    Report.redraw();
    Report.timing.load = performance.now() - begin;
  } catch (error) {
    document.querySelector(".timeline, h1").textContent = `The pictures cannot be drawn: ${error}`;
    throw error;
  }
  requestAnimationFrame(() => { Report.timing.isReady = true; });
})();
