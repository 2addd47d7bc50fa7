// Pictures of the files that a record names: before and after under one slider, others beside them.

const pictureUrl = (picture) => "data:image/png;base64," + picture.png;

function pictureOf(picture) {
  const { about } = picture;
  return make("img", { class: about.width < 200 ? "coarse" : null, src: pictureUrl(picture), alt: `${about.role}: ${about.name}, ${about.width} × ${about.height} pixels, ${about.shown}` });
}

function captionOf(picture) {
  return `${picture.about.role}: ${picture.about.name} (${picture.about.width} × ${picture.about.height}, ${picture.about.shown})`;
}

/** The slider is a range input, so that keys move it as well; what is left of it shows `before`. */
function slider(before, after) {
  const top = pictureOf(before), bottom = pictureOf(after);
  const stage = make("div", { class: "stage" }, bottom, top, make("div", { class: "edge" }));
  const move = (value) => {
    top.style.clipPath = `inset(0 ${100 - value}% 0 0)`;
    stage.lastChild.style.left = value + "%";
  };
  const input = make("input", { type: "range", min: 0, max: 100, value: 50, "aria-label": `Left of the edge: ${before.about.role}; right of it: ${after.about.role}`, on: { input: (event) => move(Number(event.target.value)) } });
  move(50);
  return make("figure", { class: "compare" }, stage, input, make("figcaption", {}, make("span", {}, captionOf(before)), make("span", {}, captionOf(after))));
}

function showPictures(parent, entry) {
  const own = DATA.pictures.filter((picture) => picture.about.record === entry.index);
  if (!own.length) return;
  const row = make("div", { class: "pictures" }), before = own.find((p) => p.about.role === "before"), after = own.find((p) => p.about.role === "after");
  if (before && after) row.append(slider(before, after));
  for (const picture of own) {
    if (before && after && (picture === before || picture === after)) continue;
    row.append(make("figure", {}, pictureOf(picture), make("figcaption", {}, captionOf(picture))));
  }
  parent.append(row);
}
