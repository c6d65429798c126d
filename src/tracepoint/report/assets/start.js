/* Begin: the text of the page is there already, then come the pictures. */
(async () => {
  const begin = performance.now();
  try {
    await Report.load();
    Report.drawTimeline();
    Report.drawHeats();
    Report.drawFlame();
    Report.redraw();
    Report.timing.load = performance.now() - begin;
  } catch (error) {
    document.querySelector(".timeline").textContent = `The pictures cannot be drawn: ${error}`;
    throw error;
  }
  requestAnimationFrame(() => { Report.timing.isReady = true; });
})();
