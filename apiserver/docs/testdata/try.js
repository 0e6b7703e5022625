"use strict";

// Tries the operation of the page as a person does: filter, open, fill in, execute.

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
	type(await appears(".operation-filter-input"), "orch");
	(await appears("#operations-Orchards-getOrchardsByIdTree .opblock-summary-control")).click();
	(await appears(".try-out__btn")).click();
	type(await appears("tr[data-param-name=id] input:enabled"), "apples");
	(await appears(".execute")).click();
	await appears(".live-responses-table .response-col_description code");
})();
