-- Who notes a refused sign-in looks for earlier ones, and not through the whole log.
CREATE INDEX audit_of_action ON audit (action, id);
