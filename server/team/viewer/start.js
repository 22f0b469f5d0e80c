SwaggerUIBundle({ url: "/api/openapi.json", dom_id: "#viewer", deepLinking: true });
