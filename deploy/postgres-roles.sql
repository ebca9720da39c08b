-- The logins of Baton's database: the owner of its tables, for migrations and rebuilds, and the service, which can add to
-- the log and not change it. Run by the PostgreSQL image on a new volume; to bring an older one up to date, run it once
-- more as the superuser: `psql --dbname baton --file postgres-roles.sql` with both passwords in the environment.
\set ON_ERROR_STOP on
\getenv owner_password BATON_OWNER_PASSWORD
\getenv runtime_password BATON_RUNTIME_PASSWORD
SELECT format('CREATE ROLE %I', name) FROM unnest(ARRAY['baton_owner', 'baton_runtime']) name
WHERE name NOT IN (SELECT rolname FROM pg_roles) \gexec
ALTER ROLE baton_owner LOGIN NOSUPERUSER PASSWORD :'owner_password';
ALTER ROLE baton_runtime LOGIN NOSUPERUSER PASSWORD :'runtime_password';
ALTER DATABASE :"DBNAME" OWNER TO baton_owner;
SELECT format('ALTER %s %s OWNER TO baton_owner', CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, oid::regclass)
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') AND relowner = current_user::regrole \gexec
SELECT format('ALTER FUNCTION %s OWNER TO baton_owner', oid::regprocedure)
FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner = current_user::regrole \gexec
