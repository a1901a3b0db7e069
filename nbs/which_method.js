// "Which method": the list of all answers, narrowed by five questions to one.
"use strict";

function whichMethod(form, list) {
  const answers = [...list.children], names = [...new Set([...form.elements].map((box) => box.name).filter(Boolean))];
  const chosen = () => Object.fromEntries(new FormData(form));
  const show = () => {
    const now = chosen();
    answers.forEach((answer) => (answer.hidden = !names.every((name) => answer.dataset[name].split(" ").includes(now[name]))));
    keep(now);
  };
  const old = state();
  names.forEach((name) => [...form.elements[name]].forEach((box) => (box.checked = old[name] ? box.value === old[name] : box.checked)));
  form.addEventListener("change", show);
  form.hidden = false;
  list.classList.add("one");
  list.setAttribute("aria-live", "polite");
  show();
}

whichMethod(document.querySelector("form.which"), document.querySelector("ul.answers"));
