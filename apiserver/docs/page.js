"use strict";

const place = document.getElementById("reference");

SwaggerUIBundle({
	domNode: place,
	url: new URL(place.dataset.document, document.baseURI).href,
	deepLinking: true,
	filter: true,
	showExtensions: true,
	plugins: [() => ({fn: {opsFilter: (tagged, phrase) => tagged.filter((_, tag) => tag.toLowerCase().includes(phrase.toLowerCase()))}})],
	// Without this, a public validator would be asked.
	validatorUrl: null,
});
