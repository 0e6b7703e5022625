"use strict";

const place = document.getElementById("reference");

SwaggerUIBundle({
	domNode: place,
	url: new URL(place.dataset.document, document.baseURI).href,
	deepLinking: true,
	filter: true,
	// Without this, a public validator would be asked.
	validatorUrl: null,
});
