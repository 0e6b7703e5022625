"use strict";

// Tries an operation of the page as a person does: sign in, filter, open, fill in, execute.

const token = document.currentScript.dataset.token;

const appears = (selector) => new Promise((resolve) => {
	const look = () => {
		const found = document.querySelector(selector);
		found ? resolve(found) : setTimeout(look, 50);
	};
	look();
});

const type = (input, text) => {
	// React sees only what goes through the setter of the prototype.
	Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, text);
	input.dispatchEvent(new Event("input", {bubbles: true}));
	// The page waits for the next letter until the input loses its focus.
	input.dispatchEvent(new FocusEvent("focusout", {bubbles: true}));
};

(async () => {
	(await appears(".auth-wrapper .authorize")).click();
	await appears(".auth-container input");
	const scheme = [...document.querySelectorAll(".auth-container")].find((found) => found.textContent.includes("PRIVATE-TOKEN"));
	type(scheme.querySelector("input"), token);
	scheme.querySelector(".authorize").click();
	(await appears(".btn-done")).click();

	type(await appears(".operation-filter-input"), "projects");
	(await appears("#operations-Projects-getProjectsById .opblock-summary-control")).click();
	(await appears(".try-out__btn")).click();
	type(await appears("tr[data-param-name=id] input:enabled"), "above/team/app");
	(await appears(".execute")).click();
	await appears(".live-responses-table .response-col_description code");
})();
