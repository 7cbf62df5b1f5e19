// Follows the fleet: newer data replaces what is shown, in its place. Only the page of a server has this script.
'use strict';

/* The scroll positions, the focus and the open parts of the view that is shown. */
function remembered() {
  const main = mainPart(), focus = document.activeElement;
  const open = [...main.querySelectorAll('details')].map((element) => element.open);
  const scrolled = [...main.querySelectorAll('.map, .wrap')].map((element) => [element.scrollLeft, element.scrollTop]);
  const map = view?.rowUnits && { openRows: view.openRows, openColumns: view.openColumns, cursor: named(view, view.cursor) };
  return { top: scrollY, left: scrollX, focus: main.contains(focus) ? steps(main, focus) : null, open, scrolled, map };
}

/* The way from an element down to another, as positions among children. */
function steps(from, to) {
  const found = [];
  for (let element = to; element !== from; element = element.parentElement) found.unshift([...element.parentElement.children].indexOf(element));
  return found;
}

const unitName = (unit) => unit && JSON.stringify([unit.isOne, unit.label, unit.group]);

/* The names of a cell, which its position may change. */
const named = (map, cursor) => cursor && { row: unitName(map.rowUnits[cursor.row]), column: unitName(map.columnUnits[cursor.column]) };

function restoreMap(map, before) {
  Object.assign(map, { openRows: before.openRows, openColumns: before.openColumns });
  map.layout();
  if (!before.cursor) return;
  const row = map.rowUnits.findIndex((unit) => unitName(unit) === before.cursor.row);
  const column = map.columnUnits.findIndex((unit) => unitName(unit) === before.cursor.column);
  if (row >= 0 && column >= 0) { map.cursor = { row, column }; map.describe(map.cursor); map.draw(); }
}

function restore({ top, left, focus, open, scrolled, map }) {
  const main = mainPart();
  if (map && view?.rowUnits) restoreMap(view, map);
  main.querySelectorAll('details').forEach((element, index) => { element.open = open[index] ?? element.open; });
  main.querySelectorAll('.map, .wrap').forEach((element, index) => { if (scrolled[index]) element.scrollTo(...scrolled[index]); });
  focus?.reduce((element, step) => element?.children[step], main)?.focus({ preventScroll: true });
  scrollTo(left, top);
}

/* Takes a newer head. Blocks that did not change are not read again. */
async function renew(newer) {
  if (newer.format !== FORMAT) { location.reload(); return; }
  const changed = (key) => head.files[key] !== newer.files[key];
  const isFleetChanged = [...new Set([...Object.keys(head.files), ...Object.keys(newer.files)])].some((key) => /^(names|map-)/.test(key) && changed(key));
  for (const key of [...asked.keys()]) if (key !== 'head' && changed(key)) { asked.delete(key); read.delete(key); }
  const isNewer = newer.shown.sequence !== head.shown.sequence;
  head = newer;
  if (isFleetChanged && fleet) {
    fleetOnce = null;
    try { await loadFleet(); } catch { return; }
  }
  const before = remembered();
  footer();
  await route({ moved: false });
  // The map is laid out once its data is here, which it is.
  await null;
  restore(before);
  if (isNewer) announce(`number ${newer.shown.sequence} is published: ${newer.title}`);
}

function follow() {
  onHead = renew;
  const source = new EventSource('events');
  let stamp = null;
  source.addEventListener('message', ({ data }) => {
    // The first event names the page that was loaded, or a newer one.
    if (data === stamp) return;
    stamp = data;
    const script = h('script', { src: `data/head.js?${encodeURIComponent(data)}`, on: { load: () => script.remove(), error: () => script.remove() } });
    document.head.append(script);
  });
}

follow();
